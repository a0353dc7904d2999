//go:build !cgo

package peers

// needsCgo says why an allocator is missing.
const needsCgo = "it needs cgo (CGO_ENABLED=1 and a C compiler)"

// clib lists the ways to the C library's malloc. This build has none of them.
var clib = []Info{
	{Name: "libc", About: "the malloc of the C library, called from Go through cgo", Miss: needsCgo},
	nativeInfo,
}
