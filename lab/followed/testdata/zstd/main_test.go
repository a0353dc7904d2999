package main

import "testing"

// TestFollowed compares what is found before and behind.
func TestFollowed(t *testing.T) {
	before, behind := run(2, unpack), run(2, unpackRounds)
	if before != behind || before.bytes < 100_000 {
		t.Errorf("%+v before, %+v behind", before, behind)
	}
}
