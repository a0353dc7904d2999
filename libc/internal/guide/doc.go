// Package guide is a small C library and its binding in Go: the examples of
// docs/guide.md, which shows its text, and whose claims its tests run.
//
// Built without cgo, it is empty.
package guide
