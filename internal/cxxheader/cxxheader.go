// Package cxxheader has the file cheap.hpp, the C++ side of a binding, which the command libc/cxx
// writes.
//
// A package of this repository that includes the file names this folder in a #cgo line, and imports
// this package: without the import go build would not see that the file has changed.
package cxxheader

import _ "embed"

// Text is the file.
//
//go:embed cheap.hpp
var Text []byte
