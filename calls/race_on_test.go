//go:build cgo && race

package calls_test

// raceEnabled says that sync.Pool drops some of what it gets.
const raceEnabled = true
