// Package guide is a small C library and its binding in Go. docs/guide.md shows
// this code, and the examples of this package are those of the guide.
//
// Without cgo the package is empty.
package guide
