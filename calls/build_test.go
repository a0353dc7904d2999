//go:build cgo && !race && !asan

package calls_test

// checkedBuild says whether recording allocates.
const checkedBuild = false
