//go:build !cgo

package buildtags

// Cgo says that blocks of package manual lie outside the Go heap. They do without cgo as well.
const Cgo = true
