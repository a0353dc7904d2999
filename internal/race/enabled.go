//go:build race

package race

// Enabled says whether the program is built with -race.
const Enabled = true
