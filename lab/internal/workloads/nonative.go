//go:build !cgo || !unix

package workloads

// missingNative says why C's malloc cannot be measured, "" if it can.
const missingNative = "it needs cgo and a Unix system"

// natives is empty: without C there are no C versions.
var natives map[string]func(s table, n, threads int) Tally
