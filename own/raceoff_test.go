//go:build !race

package own

// raceEnabled says whether the race detector runs, which makes all of it slow.
const raceEnabled = false
