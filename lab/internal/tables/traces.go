package tables

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/replay"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/recorded"
	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/rivals"
)

// decoded are the traces of the command, each read once.
var decoded = func() map[string]func() (*trace.Trace, error) {
	all := make(map[string]func() (*trace.Trace, error))
	for _, name := range recorded.Names {
		all[name] = sync.OnceValues(func() (*trace.Trace, error) { return recorded.Read(name) })
	}
	return all
}()

// OnMain runs f, and returns when f has returned. A program whose main goroutine is
// bound to the main thread replaces OnMain by a function that runs f there: glibc
// gives that thread the arena from which a program without threads allocates.
var OnMain = func(f func()) { f() }

// Traces is the table of what real programs allocated.
func Traces() measure.Table {
	t := measure.Table{Table: result.Table{
		Name:  "traces",
		Title: "The allocations of real programs, replayed",
		About: "Every call of malloc, free, calloc, realloc and aligned_alloc that a run of SQLite and one of gcc made, on one allocator after the other, " +
			"in one goroutine, without collections. `cheap replay` does the same, and reports memory as well. " +
			"native is C's malloc called from C, libc the same malloc called from Go.",
		Unit:  "operation",
		Chart: result.Bars,
	}}
	for _, name := range recorded.Names {
		for _, info := range rivals.Available() {
			row := measure.Row{
				Name:  info.Name + "-" + name,
				Group: name,
				N:     recordedOps[name],
				Procs: []int{1},
				Open:  func(int) (measure.Work, error) { return replaying(name, info) },
			}
			row.Note = traceNotes[row.Name]
			if cgoHere && info.Name != "native" {
				row.Versus = "native-" + name
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// traceNotes explain rows that are far from others of the same allocator.
var traceNotes = map[string]string{
	"modernc-sqlite": "empty regions go back to the system, and come again: about 2,300 page faults in each replay",
	"modernc-gcc":    "one free list for each power of two, for one goroutine; no page fault, because nothing goes back to the system",
}

// recordedOps is how many operations each trace has. They are not counted, because
// that takes longer than listing rows may take.
var recordedOps = map[string]int{"sqlite": 183_052, "gcc": 155_047}

// replaying is a trace on one allocator. The allocator keeps its memory from round
// to round.
func replaying(name string, info peers.Info) (measure.Work, error) {
	tr, err := decoded[name]()
	if err != nil {
		return measure.Work{}, err
	}
	var s *replay.Session
	OnMain(func() { s, err = replay.NewSession(tr, []peers.Info{info}) })
	if err != nil {
		return measure.Work{}, err
	}
	once := func() (float64, error) {
		var took []time.Duration
		OnMain(func() { took, err = s.Round(context.Background(), 0) })
		if err != nil {
			return 0, err
		}
		return float64(took[0].Nanoseconds()), nil
	}
	return measure.Work{
		Time: func(n int) (wall, cpu float64, err error) {
			if n%len(tr.Ops) != 0 {
				return 0, 0, fmt.Errorf("%d operations are not a whole number of replays of %d", n, len(tr.Ops))
			}
			// Before the round, C's malloc was made to release unused memory, which
			// an ordinary program does not do.
			if _, err := once(); err != nil {
				return 0, 0, err
			}
			for range n / len(tr.Ops) {
				ns, err := once()
				if err != nil {
					return 0, 0, err
				}
				wall += ns
			}
			return wall, 0, nil
		},
		Close: func() { OnMain(func() { s.Close() }) }, // no block is live
	}, nil
}
