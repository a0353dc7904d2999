//go:build cgo && (race || asan)

package calls_test

// checkedBuild says whether recording allocates: pointers are checked, and with -race and -asan
// sync.Pool drops some of what it gets.
const checkedBuild = true
