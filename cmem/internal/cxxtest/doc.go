// Package cxxtest calls the operators new and delete of C++, for tests of package cmem.
//
// The build tag cxx says that there is a C++ compiler. Without the tag, and without cgo, the
// package is empty.
package cxxtest
