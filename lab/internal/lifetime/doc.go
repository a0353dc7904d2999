// Package lifetime has the ways for Go objects to own blocks of C that the
// benchmarks compare: by hand, by AddCleanup, by SetFinalizer, and those of
// package own.
//
// A [Lifetime] makes objects and drops them. It knows when the last block has been
// destroyed, which ends a round. A [Population] is many live objects: it measures
// what they cost a collection.
//
// The blocks are those of internal/test/cside, so the package needs cgo and Unix.
// Elsewhere it has only Collect.
package lifetime
