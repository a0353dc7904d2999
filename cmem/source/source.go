// Package source has the C code of package cmem. Package cmem compiles it into programs that
// import it; the command cheap record compiles it into a library that it preloads into programs
// that do not.
//
// The constraint "ignore" keeps the files out of this package, which has no cgo. The files of package
// cmem that have their names include them, where it works. internal.h says what is in which.
package source

import "embed"

// Files has the C files.
//
//go:embed *.c *.h
var Files embed.FS
