// Package cgoalloc is a drop-in for github.com/CannibalVox/cgoalloc v1.2.1, on the engine of
// [github.com/cheapgo/cheap]. A program that uses the original changes the import path and
// its go.mod; docs/porting.md shows how. New programs use package cheap itself.
//
//	c := &cgoalloc.DefaultAllocator{}
//	blocks, err := cgoalloc.CreateFixedBlockAllocator(c, 4096, 64, 8)
//	...
//	arena := cgoalloc.CreateArenaAllocator(cgoalloc.CreateFallbackAllocator(blocks, c))
//	name := cgoalloc.CString(arena, "hello")
//	...
//	arena.FreeAll()
//
// # Differences
//
// The package does what the original promises, errors and panics included. It
// corrects these mistakes of the original:
//
//   - Free of a block that is free already, or of the inside of a block, panics.
//     The original accepts it, and returns the same memory from two Mallocs.
//   - A second Destroy of a [FixedBlockAllocator] frees nothing. The original
//     frees all pages again. As before, the allocator may be used after Destroy,
//     and is empty then.
//   - Destroy of an [ArenaAllocator] does not destroy the inner allocator, which
//     may have other users. The original destroys it.
//   - Malloc returns nil if there is no memory. The original ends the program.
//   - Free(nil) does nothing, for every allocator, as free(NULL) in C.
//   - [ArenaAllocator.Free] takes constant time.
//
// A program may notice these differences:
//
//   - The pages of a FixedBlockAllocator are at least 64 KiB, and aligned to their
//     size. So the inner allocator gets fewer and larger requests.
//   - If the inner allocator is a FixedBlockAllocator whose blocks are too small
//     for such a page, pages come from the allocator below it.
//   - The alignment must be a power of two.
//   - A negative size panics.
//
// # Without cgo
//
// The package needs cgo: the environment variable CGO_ENABLED must be 1, and a C compiler must
// be installed. Without it the package has no names: the compiler says "undefined:
// cgoalloc.CString".
package cgoalloc
