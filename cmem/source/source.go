// Package source has the C code of package cmem. Package cmem compiles it into programs that
// import it; the command cheap record compiles it into a library that it preloads into programs
// that do not.
package source

import "embed"

// Files has the C files.
//
//go:embed *.c *.h
var Files embed.FS
