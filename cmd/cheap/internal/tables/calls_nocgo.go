//go:build !cgo || !unix

package tables

// withoutC says what is missing without C.
const withoutC = " The rows that call C are missing: they need cgo (CGO_ENABLED=1 and a C compiler) on Unix."

// cgoCalls returns nothing: without C there are no calls of C functions.
func cgoCalls() []call { return nil }
