package pace

import (
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

var stateNames = [states]string{"idle", "due", "collecting", "draining", "refused", "stopped"}

var eventNames = [events]string{"reached", "limithit", "begun", "completed", "externalgc", "drained", "futile", "resumed", "stop"}

// drawn are the edges that docs/internals.md draws: from state and event to state.
func drawn(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/internals.md")
	testcall.Must(t, err)
	_, pacing, _ := strings.Cut(string(text), "\n## Pacing\n")
	_, drawing, _ := strings.Cut(pacing, "stateDiagram-v2\n")
	drawing, _, _ = strings.Cut(drawing, "```")
	edges := map[string]string{}
	for line := range strings.Lines(drawing) {
		line = strings.ToLower(strings.TrimSpace(line))
		from, rest, _ := strings.Cut(line, " --> ")
		to, by, _ := strings.Cut(rest, ": ")
		if from == "[*]" || to == "[*]" {
			continue
		}
		for _, e := range strings.Split(by, ", ") {
			edges[from+" "+e] = to
		}
	}
	for _, s := range stateNames[:stopped] {
		edges[s+" stop"] = "stopped"
	}
	return edges
}

// TestTransitions compares each state and event with the drawing.
func TestTransitions(t *testing.T) {
	edges := drawn(t)
	if len(edges) != 16 {
		t.Errorf("%d edges are drawn", len(edges))
	}
	for s := range states {
		for e := range events {
			m := new(machine)
			m.is.Store(int32(s))
			want, ok := edges[stateNames[s]+" "+eventNames[e]]
			if !ok {
				want = stateNames[s]
			}
			if did := m.to(e); did != ok || stateNames[m.state()] != want {
				t.Errorf("%s, %s: now %s, %v; want %s, %v", stateNames[s], eventNames[e], stateNames[m.state()], did, want, ok)
			}
		}
	}
}

// TestMachineModel takes events at random, and compares the machine with a model that
// knows the rules and no table.
func TestMachineModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var m machine
		var (
			wants, collects, drains, refuses, ended bool  // the state
			mine                                    bool  // the collection is one of ours
			began, done                             int64 // collections of ours
		)
		for range 300 {
			e := event(r.IntN(int(events)))
			if e == stop && r.IntN(50) > 0 {
				continue
			}
			did := m.to(e)
			should := false
			switch {
			case ended:
			case e == stop:
				should, ended = true, true
			case e == reached || e == limitHit && !refuses:
				should = !wants && !collects && !drains
				wants, refuses = wants || should, refuses && !should
			case e == begun:
				if should = wants; should {
					wants, collects, mine = false, true, true
					began++
				}
			case e == completed:
				if should = collects; should {
					collects, drains = false, true
				}
			case e == externalGC:
				if should = !collects && !drains; should {
					wants, refuses, drains, mine = false, false, true, false
				}
			case e == drained || e == futile:
				if should = drains; should {
					drains, refuses = false, e == futile
					if mine {
						done++
					}
				}
			case e == resumed:
				should, refuses = refuses, false
			}
			if did != should {
				t.Fatalf("seed %d: %s was taken: %v, want %v", seed, eventNames[e], did, should)
			}
			is := m.state()
			if b, d := m.counts(); b != began || d != done || b-d > 1 {
				t.Fatalf("seed %d: %d begun, %d ended, want %d and %d", seed, b, d, began, done)
			}
			if !ended && (is == due != wants || is == collecting != collects || is == draining != drains || is == refused != refuses) || ended != (is == stopped) {
				t.Fatalf("seed %d: in %s after %s", seed, stateNames[is], eventNames[e])
			}
		}
	}
}

// TestHammerMachine has many goroutines take events. One at a time begins and ends a
// collection.
func TestHammerMachine(t *testing.T) {
	var m machine
	var under, collections atomic.Int64
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(g, 2))
			for range 5000 {
				switch m.to(event(r.IntN(int(begun)))); {
				case r.IntN(4) == 0 && m.to(externalGC):
				case m.to(begun):
					collections.Add(1)
					if !m.to(completed) {
						t.Error("a collection ended without this goroutine")
					}
				default:
					continue
				}
				if under.Add(1) != 1 {
					t.Error("two drain at a time")
				}
				under.Add(-1)
				if !m.to([]event{drained, futile}[r.IntN(2)]) {
					t.Error("the releases ended without this goroutine")
				}
				m.to(resumed)
			}
		})
	}
	wg.Wait()
	if begun, ended := m.counts(); begun != ended || begun != collections.Load() || begun == 0 {
		t.Errorf("%d begun, %d ended, want %d", begun, ended, collections.Load())
	}
}
