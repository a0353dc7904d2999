//go:build linux && amd64

package main

import (
	"maps"
	"testing"
)

// TestFollowed compares what is found before and behind.
func TestFollowed(t *testing.T) {
	before, behind := run(2, 2000, length), run(2, 2000, field)
	if !maps.Equal(before, behind) || before[9] != 2*1000 {
		t.Errorf("%v before, %v behind", before, behind)
	}
}
