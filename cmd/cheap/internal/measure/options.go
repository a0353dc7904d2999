package measure

import (
	"context"
	"io"
	"os/exec"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// Options says what to measure, and for how long.
type Options struct {
	Keep  func(table, row string) bool // nil keeps every row
	Procs []int                        // takes the place of the rows' own; nil keeps those

	// Budget is how long the whole run is to take, from which the rounds and
	// their length follow. Count and Each set these, each for itself.
	Budget time.Duration
	Count  int // rounds, 0 for as many as the budget allows
	Each   Length

	Profile io.Writer // where the profile of the tables that are profiled goes, nil for none

	Machine  result.Machine
	Notes    []string                                            // of the report, before its own
	Child    func(ctx context.Context, args ...string) *exec.Cmd // runs [Child] in a process of its own
	Progress func(Progress)                                      // nil says nobody looks
}

// A Length is how much of a row one round is: for so long, or so many
// operations. The zero value leaves it to the budget. A row with an N keeps it.
type Length struct {
	Time time.Duration
	N    int
}

// A Progress is what is being measured.
type Progress struct {
	Table, Row string
	Procs      int
	Step       string        // "calibrating", "round 3"
	Left       time.Duration // until the end of the run, estimated
}

// The rounds of a row, where the budget decides. A confidence interval of 95 %
// takes 6, and leaves the lowest and the highest out from 9 on, two of each from
// 12. What is too slow for that has few rounds or one, and no interval.
const (
	fewRounds     = 3
	enoughRounds  = 6
	aimedAtRounds = 9
	mostRounds    = 12

	// calibrationRounds is about how many more it takes to find how many
	// operations a round is to have.
	calibrationRounds = 4

	// overdraft is how much longer than its share of the time a row may take to
	// come to enough rounds.
	overdraft = 2.5
)

// How long a round of a row is, where the budget decides.
const (
	shortestRound = time.Millisecond
	longestRound  = 25 * time.Millisecond
	betweenRounds = 2 * time.Millisecond // about what the collections between rounds take

	mostOperations = 1e9 // in a round whose length is sought
)
