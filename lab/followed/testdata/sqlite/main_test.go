package main

import "testing"

// TestFollowed compares what is found before and behind.
func TestFollowed(t *testing.T) {
	before, behind := run("sqlite3", 2), run(roundsDriver, 2)
	if before != behind || before.rows != 100_000 {
		t.Errorf("%+v before, %+v behind", before, behind)
	}
}
