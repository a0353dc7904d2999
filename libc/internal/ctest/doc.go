// Package ctest holds C functions for the tests of package libc, whose files
// may not use cgo themselves.
//
// Built without cgo, it is empty.
package ctest
