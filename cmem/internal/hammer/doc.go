// Package hammer allocates C memory in all ways at the same time, and looks at the stacks that
// package cmem has taken. Without cgo it is empty.
package hammer
