//go:build !cgo || !unix

package tables

// cgoCalls returns nothing: without C there are no calls of C functions.
func cgoCalls() []call { return nil }
