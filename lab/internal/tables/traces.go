package tables

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/replay"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/recorded"
	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/internal/watch/guard"
	"github.com/cheapgo/cheap/internal/watch/sample"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/rivals"
)

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
			"in one goroutine, without collections. `lab replay` does the same in a process for each allocator, and reports memory as well. " +
			"native is C's malloc called from C, libc the same malloc called from Go. " +
			"With -run traces also with samples at the default rate of package inspect, and with guard pages around one block in 10,000.",
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
				Open:  func(int) (measure.Work, error) { return replaying(embedded[name], info) },
			}
			row.Note = traceNotes[row.Name]
			if cgoHere && info.Name != "native" {
				row.Versus = "native-" + name
			}
			t.Rows = append(t.Rows, row)
			if info.Name == "heap" || info.Name == "local" {
				t.Rows = append(t.Rows, aided(row, name, info)...)
			}
		}
	}
	return t
}

// sampledRate is inspect.DefaultRate, and guardRate what the documentation of inspect.SetGuardRate
// proposes for production.
const (
	sampledRate = 512 << 10
	guardRate   = 10_000
)

// aided are rows with what finds mistakes in production, which is off in the others.
func aided(without measure.Row, name string, info peers.Info) []measure.Row {
	var rows []measure.Row
	for kind, set := range map[string]func(on bool){
		"sampled": func(on bool) { sample.SetRate(onlyIf(on, sampledRate)) },
		"guarded": func(on bool) { guard.SetRate(onlyIf(on, guardRate)) },
	} {
		row := without
		row.Name, row.Versus, row.Note, row.Named = info.Name+"-"+kind+"-"+name, without.Name, "", true
		row.Open = func(int) (measure.Work, error) {
			w, err := replaying(embedded[name], info)
			replay := w.Time
			w.Time = func(n int) (wall, cpu float64, err error) {
				set(true)
				defer set(false)
				return replay(n)
			}
			return w, err
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b measure.Row) int { return -strings.Compare(a.Name, b.Name) })
	return rows
}

func onlyIf(on bool, rate int64) int64 {
	if on {
		return rate
	}
	return 0
}

// traceNotes explain rows that are far from others of the same allocator.
var traceNotes = map[string]string{
	"modernc-sqlite": "empty regions go back to the system, and come again: about 2,300 page faults in each replay",
	"modernc-gcc":    "one free list for each power of two, for one goroutine; no page fault, because nothing goes back to the system",
}

// recordedOps is how many operations each trace has. They are not counted, because
// that takes longer than listing rows may take.
var recordedOps = map[string]int{"sqlite": 183_052, "gcc": 155_047}

// embedded are the traces of this program, each read once.
var embedded = func() map[string]func() (*trace.Trace, error) {
	all := make(map[string]func() (*trace.Trace, error))
	for _, name := range recorded.Names {
		all[name] = sync.OnceValues(func() (*trace.Trace, error) { return recorded.Read(name) })
	}
	return all
}()

// replaying is a trace on one allocator. The allocator keeps its memory from round
// to round.
func replaying(read func() (*trace.Trace, error), info peers.Info) (measure.Work, error) {
	tr, err := read()
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
