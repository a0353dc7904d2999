//go:build !cgo || !unix

package tables

// withoutC says what is missing where there is no C.
const withoutC = " The rows that call C are missing: they need cgo (CGO_ENABLED=1 and a C compiler) on Unix."

// cgoCalls lists the calls of C functions, of which there are none.
func cgoCalls() []call { return nil }
