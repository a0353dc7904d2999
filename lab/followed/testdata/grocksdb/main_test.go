package main

import "testing"

// TestFollowed compares what is found before and behind.
func TestFollowed(t *testing.T) {
	before, behind := run(2, 1000, scan), run(2, 1000, scanRounds)
	if before != behind || before.rows != 2000 {
		t.Errorf("%+v before, %+v behind", before, behind)
	}
}
