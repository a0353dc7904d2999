// Package ctest has a small library of C, whose objects call a Go function, and a binding of it
// by package own: for the tests of own.Callback, which are here.
//
// Built without cgo, it is empty.
package ctest
