// Package splice builds a program with a copy of Go's runtime that finds the
// place of a cleanup or finalizer without walking.
//
// A record of the runtime about an object is a special: a finalizer, a cleanup, a
// weak pointer, a sample of the heap profile. A span keeps the specials of its
// objects in one list, sorted by offset. Each AddCleanup and SetFinalizer walks this
// list from its head, by specialFindSplicePoint, to the place of the new special.
// Objects are allocated in ascending order, so the place is nearly always the end,
// and n specials in a span cost n²/2 steps. A span has room for 1,024 objects of 8
// bytes.
//
// In the copy, a span remembers the last special that the walk has passed. The next
// walk begins there if its object is further on. The remembered special must still
// be in the list:
//
//   - A walk for an offset remembers a special of a lower offset, or none. A special
//     that is unlinked after a walk, before the next walk and under the lock that
//     the walk needs, has the offset of the walk. So it is never the remembered one.
//   - The sweep unlinks without a walk, by a specialsIter. The span forgets when a
//     specialsIter is made.
//   - A span that is reused begins with nothing remembered.
//
// This holds for the functions that were read for it. The copy is made only if the
// installed runtime has exactly these functions, and no others that use the lists;
// see [Unmatched].
//
// The installation is not changed: the copy of the one file is in a temporary
// folder, and the build is told by -overlay to read it instead.
package splice
