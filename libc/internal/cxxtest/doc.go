// Package cxxtest holds objects of C++ for the tests of cheap.hpp.
//
// The build tag cxx says that there is a C++ compiler. Without the tag, and without cgo,
// the package is empty.
package cxxtest
