// Package cside is the C side of the tests and benchmarks of owners: resources that
// C makes, destroys and counts.
//
// There are two kinds. A block is 100 bytes of malloc, made by one C function and
// destroyed by another. Counting it is so cheap that the time is that of malloc and
// of the call. There is one count, for the process. The resources of a [Ledger] are
// for tests: the ledger knows for each address how often it was created and
// destroyed, and a destroyed resource is marked, so that a later use is detected.
//
// There are also calls that cost no more than a cgo call: an addition, whose results
// count the calls, and malloc and free.
//
// The package needs cgo and Unix. Elsewhere it is empty.
package cside
