package blackbox

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/census"
)

// How many a record has of each.
const (
	mostFigures = 5
	mostStacks  = 5
	mostCalls   = 10
	mostName    = 160 // bytes of a name
)

// A live reads this process.
type live struct {
	limits *charge
	owners costly[[]Stack]
}

func newLive(root string) *live { return &live{limits: newCharge(root)} }

func (l *live) charge(now time.Time) (used, limit int64) { return l.limits.look(now) }

func (l *live) close() { l.limits.close() }

// record returns what is known at a time.
func (l *live) record(now time.Time) *Record {
	r := new(Record)
	if used, limit := l.limits.look(now); limit > 0 {
		r.Container = &Container{Charged: used, Limit: limit}
	}
	r.Kills = l.limits.kills()
	for _, u := range account.Process.Largest(mostFigures) {
		r.Pools = append(r.Pools, Figure{Name: clip(u.Name), Bytes: u.Held})
	}
	if c := census.C(); c != nil && c.Off() == "" {
		for _, b := range c.Libraries(nil) {
			r.Libraries = append(r.Libraries, Figure{Name: clip(b.Name), Bytes: b.Live, Count: b.Blocks})
		}
		r.Libraries = r.Libraries[:min(mostFigures, len(r.Libraries))]
		for _, s := range c.Top(mostStacks) {
			r.C = append(r.C, Stack{Name: clip(s.Library), Bytes: s.Live, Calls: calls(s.Stack)})
		}
	}
	r.Owners = l.owners.get(now, owners)
	for _, p := range inspect.Where(mostStacks).Places {
		s := Stack{Bytes: p.Live}
		for _, f := range p.Stack[:min(mostCalls, len(p.Stack))] {
			s.Calls = append(s.Calls, call(f.Function, f.File, f.Line))
		}
		r.Blocks = append(r.Blocks, s)
	}
	return r
}

// owners returns the stacks that made the open owners.
func owners() (all []Stack) {
	for _, s := range inspect.Suspects() {
		if s.Bytes > 0 && len(all) < mostStacks {
			all = append(all, Stack{Name: clip(s.Pool), Bytes: s.Bytes, Calls: calls(s.Stack)})
		}
	}
	return all
}

// A costly is a value that takes long to find. It takes one percent of the time at most, and is as old as
// that needs.
type costly[T any] struct {
	value T
	next  time.Time // when it may be found again
}

func (c *costly[T]) get(now time.Time, find func() T) T {
	if !now.Before(c.next) {
		began := time.Now()
		c.value = find()
		c.next = now.Add(budgetShare * time.Since(began))
	}
	return c.value
}

// calls returns the calls of a stack in the format of a goroutine's trace.
func calls(stack string) (all []string) {
	for line := range strings.Lines(stack) {
		line = strings.TrimSuffix(line, "\n")
		file, isFile := strings.CutPrefix(line, "\t")
		switch {
		case isFile && len(all) > 0 && hasLine(file):
			all[len(all)-1] = clip(all[len(all)-1] + " " + path.Base(file))
		case !isFile && len(all) == mostCalls:
			return all
		case !isFile:
			all = append(all, clip(line))
		}
	}
	return all
}

// hasLine reports whether a file is one of source code, with a line. For functions of C it is a library.
func hasLine(file string) bool {
	_, line, _ := strings.Cut(path.Base(file), ":")
	return line != ""
}

func call(function, file string, line int) string {
	return clip(fmt.Sprintf("%s %s:%d", function, path.Base(file), line))
}

// clip returns a name that is not too long.
func clip(name string) string {
	if len(name) > mostName {
		return strings.ToValidUTF8(name[:mostName-3], "") + "..."
	}
	return name
}
