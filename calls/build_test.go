//go:build cgo && !race && !cheap_check

package calls_test

// checkedBuild says whether recording allocates.
const checkedBuild = false
