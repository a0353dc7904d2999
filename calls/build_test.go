//go:build cgo && !race && !asan && !cheap_check

package calls_test

// checkedBuild says whether recording allocates.
const checkedBuild = false
