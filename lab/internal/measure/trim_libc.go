//go:build cgo

package measure

import "github.com/cheapgo/cheap/libc"

// trim has the C library give back to the system what it can, where that is
// glibc.
func trim() { libc.Allocator{}.Trim() }
