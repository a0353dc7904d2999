package measure

import (
	"context"
	"os/exec"
	"time"

	"github.com/cheapgo/cheap/internal/page/result"
)

// Options says what to measure, and for how long.
type Options struct {
	Keep  func(table, row string) bool // nil keeps every row
	First func(table, row string) bool // the rows that are measured before the others; nil is none
	Procs []int                        // instead of those of the rows; nil keeps those

	// Budget is how long the whole run may take. The number of rounds and their
	// length follow from it, unless Count or Each says otherwise. A row that does not
	// fit is left out, and named in the notes of the report.
	Budget time.Duration
	Count  int // rounds; 0: the budget decides
	Each   Length

	Machine  result.Machine
	Bars     bool                                                // compare with what is promised of rows
	Notes    []string                                            // of the report, before its own
	Child    func(ctx context.Context, args ...string) *exec.Cmd // runs [Child] in a process of its own
	Progress func(Progress)                                      // may be nil

	clock clock // of tests
}

// A Length is the length of a round: a time, or a number of operations. With the
// zero value it follows from the budget. A row with an N keeps it.
type Length struct {
	Time time.Duration
	N    int
}

// A Progress says what is being measured.
type Progress struct {
	Table, Row string
	Procs      int
	Step       string        // "calibrating", "round 3"
	Left       time.Duration // until the end of the run, estimated
}

// The rounds of a row, if the budget decides. A confidence interval of 95 % needs 6
// rounds. From 9 rounds on it leaves out the fastest and the slowest, from 12 on
// two of each. A row that is too slow has fewer rounds, and no interval.
const (
	fewRounds     = 3
	enoughRounds  = 6
	aimedAtRounds = 9
	mostRounds    = 12

	// calibrationRounds is about how many more rounds it takes to find the number
	// of operations in a round.
	calibrationRounds = 4

	// probe is which part of a round shows how long a whole one takes.
	probe = 20

	// searchRounds is how many rounds may pass until that number is found. Where other
	// programs interrupt the rounds, no number seems to be right.
	searchRounds = 16

	// overdraft is by which factor a row may exceed its share of the time to have
	// enough rounds.
	overdraft = 2.5
)

// The length of a round, if the budget decides.
const (
	shortestRound = time.Millisecond
	longestRound  = 25 * time.Millisecond
	betweenRounds = 2 * time.Millisecond // about the time of the collections between rounds

	mostOperations = 1e9 // in a round of a calibration
)
