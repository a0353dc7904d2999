// Package lifetime has the ways in which Go objects own blocks of C that the
// benchmarks compare: by hand, by AddCleanup, by SetFinalizer, and those of
// package own.
//
// A [Lifetime] makes objects and drops them, and knows when the last block has
// been destroyed: a round is not over before. A [Population] is many objects that
// are live, for what they cost a collection.
//
// The blocks are those of internal/cside, so the package needs cgo and Unix.
// Elsewhere it has Collect alone.
package lifetime
