// Package cside is the C side of the tests and benchmarks of owners: resources
// that C makes and destroys, and counts.
//
// There are two kinds. A block is 100 bytes of malloc, made and destroyed by a C
// function each, and counted so cheaply that what is measured is malloc and the
// way to it; there is one count, for the process. A [Ledger]'s resources are for
// tests: it knows for each address how often it was created and destroyed, and
// a resource poisons itself when it is destroyed, so that a later use is seen.
//
// Beside them there are calls that cost what a cgo call does: an addition, whose
// results count the calls, and malloc and free as they are.
//
// The package needs cgo and Unix. Elsewhere it is empty.
package cside
