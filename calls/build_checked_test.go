//go:build cgo && (race || cheap_check)

package calls_test

// checkedBuild says whether recording allocates: pointers are checked, and with the race detector
// sync.Pool drops some of what it gets.
const checkedBuild = true
