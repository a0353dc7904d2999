// Package cgoalloc is github.com/CannibalVox/cgoalloc, v1.2.1, on the engine of
// [github.com/cheapgo/cheap]: a program changes the import path and nothing
// else.
//
// What the original promises holds here, errors and panics included. Where it
// was wrong, this package is not:
//
//   - A block that is freed twice, or that lies within another, panics; it was
//     accepted and handed out twice.
//   - A second Destroy of a [FixedBlockAllocator] frees nothing; it freed all
//     pages again. As before, one that was destroyed can be used on, from the
//     start.
//   - Destroy of an [ArenaAllocator] leaves the inner allocator alone, which may
//     have other users; it was destroyed.
//   - Malloc returns nil where there is no memory; the program ended.
//   - Free(nil) does nothing, for every allocator, as free(NULL) in C.
//   - [ArenaAllocator.Free] takes constant time.
//
// What programs may notice besides: pages of a FixedBlockAllocator are at least
// 64 KiB, and aligned to their size, so the inner allocator sees fewer and
// larger requests. Where the inner allocator is a FixedBlockAllocator whose
// blocks are too small for such a page, pages come from the allocator below
// that one. The alignment must be a power of two. A size that is negative
// panics.
//
// New programs use package cheap itself. The package needs cgo; built without
// it, it is empty.
package cgoalloc
