//go:build !cgo || !unix

package peers

var nativeInfo = Info{
	Name:  "native",
	About: "the malloc of the C library, called from a C loop",
	Miss:  "it needs cgo (CGO_ENABLED=1 and a C compiler) on Unix",
}

// CMalloc says which malloc this process is linked with, if that is known.
func CMalloc() string { return "unknown to this build" }

// MallocFile returns the path of the file that has C's malloc, if that is known.
func MallocFile() string { return "an unknown library" }
