// Package widgets binds a small toolkit, in the way of GTK: a window keeps its buttons, and a
// button calls functions. docs/guide.md shows parts of it.
//
// Built without cgo, it is empty.
package widgets
