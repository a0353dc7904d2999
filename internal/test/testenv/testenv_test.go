package testenv

import (
	"slices"
	"testing"
)

// TestSkip skips in each place that is asked for, and nowhere else.
func TestSkip(t *testing.T) {
	t.Setenv("CC", "musl-gcc")
	t.Setenv("CHEAP_TEST_EXEC", "")
	var ran []string
	for _, places := range []string{"", "emulator", "musl", "emulator musl"} {
		t.Run(places, func(t *testing.T) {
			Skip(t, places, "of this test")
			ran = append(ran, places)
		})
	}
	if want := []string{"", "emulator"}; !slices.Equal(ran, want) {
		t.Errorf("%q ran, want %q", ran, want)
	}
}
