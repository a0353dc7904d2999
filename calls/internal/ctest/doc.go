// Package ctest has C functions for the tests of package calls, the methods that callgen has
// written for them, and plain cgo calls of the same functions to compare with.
package ctest
