//go:build cgo && (amd64 || arm64)

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// TestRecordInUse has the line of what is in use where no sample is.
func TestRecordInUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts shared.Counts
		want   string
	}{
		{shared.Counts{Rate: sample.DefaultRate}, "less than 1.50 MiB in use, with a certainty of 95 %: no sample is in use"},
		{shared.Counts{Rate: sample.DefaultRate, LiveSamples: 2, Live: 1 << 20}, "1.00 MiB in use"},
		{shared.Counts{Rate: 1, LiveSamples: 2, Live: 64 << 20, Held: 70 << 20}, "64.0 MiB in use"},
		{shared.Counts{Rate: 1, LiveSamples: 2, Live: 64 << 20, Held: 300 << 20}, "64.0 MiB in use, for which malloc has taken 300 MiB: the blocks are small"},
		{shared.Counts{Rate: 1}, "0 bytes in use"}, // each block is a sample
	} {
		if got := inUse(c.counts); got != c.want {
			t.Errorf("%+v: %s, want %s", c.counts, got, c.want)
		}
	}

	// Each block of the program is freed at the end, so there is no sample in use, or there are few.
	r := record(t, "-rate", "100000", theRecorded(t), "threads")
	if !strings.Contains(r.stderr, "\n  at the end  ") || strings.Contains(r.stderr, "  0 bytes in use\n") {
		t.Errorf("the report is\n%s", r.stderr)
	}
}

// TestRecordSmallBlocks records a program that keeps blocks of 7 bytes, for each of which glibc takes 32.
func TestRecordSmallBlocks(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	compileC(t, program, `
#include <stdlib.h>
void *volatile kept;
int main(void) {
	for (int i = 0; i < 100000; i++)
		kept = malloc(7);
	return 0;
}
`, "-O1")
	r := record(t, "-rate", "1", program)
	if want := "\n  at the end  684 KiB in use, for which malloc has taken 3.05 MiB: the blocks are small, by place:\n"; r.code != 0 || !strings.Contains(r.stderr, want) {
		t.Errorf("code %d, no %s in\n%s", r.code, want, r.stderr)
	}
}
