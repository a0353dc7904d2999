// Package splice builds a program with a copy of Go's runtime that finds the
// place of a cleanup or finalizer without walking.
//
// Whatever the runtime knows of an object besides its memory is a special: a
// finalizer, a cleanup, a weak pointer, a heap profile's sample. A span keeps
// those of its objects in one list, sorted by offset. Each AddCleanup and
// SetFinalizer walks this list from its head, by specialFindSplicePoint, to where
// the new one belongs. Objects are allocated in ascending order, so that it is
// nearly always the end, and n specials in a span cost n²/2 steps; a span of
// 8-byte objects has room for 1,024 of them.
//
// In the copy a span remembers the last special that the walk has passed, and
// the next walk begins there if the object that it is for is further on. What is
// remembered has to be in the list still:
//
//   - A walk for an offset remembers a special of a lower offset, or none. What
//     is unlinked after a walk, before the next one and under the lock that the
//     walk needs, has the offset of the walk. So it is never what is remembered.
//   - The sweep unlinks without a walk, by a specialsIter. To make one forgets.
//   - A span that is used for something else begins with nothing remembered.
//
// All that holds for the functions that were read for it. The copy is made only
// if the installed runtime has exactly these and no others that know of the
// lists; see [Unmatched].
//
// The installation is not changed: the copy of the one file is in a temporary
// folder, and the build is told by -overlay to read it instead.
package splice
