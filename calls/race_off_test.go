//go:build cgo && !race

package calls_test

const raceEnabled = false
