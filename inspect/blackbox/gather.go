package blackbox

import (
	"cmp"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/inspect/internal/suspects"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/resident"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// How many a record has of each.
const (
	mostFigures = 5
	mostStacks  = 5
	mostCalls   = 10

	mostName, mostSentence = 160, 500 // bytes

	costlyShare = 1000
)

// A live reads this process.
type live struct {
	root   string // of the file system
	limits charge
	owners costly[[]Stack]
	c      costly[[]Stack]
}

func (l *live) charge(now time.Time) (used, limit int64) { return l.limits.look(l.root, now) }

// record returns what is known at a time. It reads neither mappings nor the inside of malloc, which would
// hold up the threads that allocate.
func (l *live) record(now time.Time) *Record {
	reading, verdict := resident.Process.Judge(resident.Options{Sites: true})
	table := reading.Table()
	r := &Record{
		Verdict: clip(verdict.Sentence, mostSentence), Advice: clip(verdict.Do, mostSentence),
		Container: containerOf(&reading.Cgroup), Kills: l.limits.kills(),
		Resident: table.Resident, Swap: table.Swap,
		Pools: figures(reading.Pools), Heaps: figures(reading.Heaps), Libraries: figures(reading.C.Libraries),
		C: l.c.get(now, stacksOfC), Owners: l.owners.get(now, owners), Blocks: blocks(),
	}
	for _, p := range table.Parts {
		r.Parts = append(r.Parts, Figure{Name: clip(p.Name, mostName), Bytes: p.Bytes, Swap: p.Swap})
	}
	slices.SortStableFunc(r.Parts, func(x, y Figure) int { return cmp.Compare(y.Bytes, x.Bytes) })
	if table.Resident == 0 {
		r.Notes = append(r.Notes, "This system does not say what is resident: "+runtime.GOOS+".")
	}
	switch c := census.C(); {
	case c == nil:
		r.Notes = append(r.Notes, "Module cmem is not in the program, so what C has in use is not told apart.")
	case c.Off() != "":
		r.Notes = append(r.Notes, clip("Module cmem does nothing: "+c.Off()+".", mostSentence))
	}
	return r
}

func containerOf(c *resident.Cgroup) *Container {
	if !c.Known {
		return nil
	}
	return &Container{
		Charged: c.Charged, Limit: c.Limit, High: c.High, Swap: c.Swap, Cache: c.Cache,
		OOM: c.OOM, OOMKills: c.OOMKills, Pressure: c.Pressure,
	}
}

// figures returns the first holders.
func figures(list []resident.Holder) (all []Figure) {
	for _, h := range list[:min(mostFigures, len(list))] {
		if h.Bytes > 0 {
			all = append(all, Figure{Name: clip(h.Name, mostName), Bytes: h.Bytes, Count: h.Count})
		}
	}
	return all
}

// stacksOfC returns the stacks of C with the most bytes in use.
func stacksOfC() (all []Stack) {
	c := census.C()
	if c == nil || c.Off() != "" {
		return nil
	}
	for _, s := range c.Top(mostStacks) {
		all = append(all, Stack{Name: clip(s.Library, mostName), Bytes: s.Live, Calls: calls(s.Stack)})
	}
	return all
}

// blocks returns the stacks with the most bytes in blocks of heaps.
func blocks() (all []Stack) {
	if sample.Count() == 0 {
		return nil
	}
	for _, p := range inspect.Where(mostStacks).Places {
		s := Stack{Bytes: p.Live}
		for _, f := range p.Stack[:min(mostCalls, len(p.Stack))] {
			s.Calls = append(s.Calls, clip(fmt.Sprintf("%s %s:%d", f.Function, path.Base(f.File), f.Line), mostName))
		}
		all = append(all, s)
	}
	return all
}

// owners returns the stacks that made the open owners.
func owners() (all []Stack) {
	for _, s := range suspects.Read() {
		if s.Bytes > 0 && len(all) < mostStacks {
			all = append(all, Stack{Name: clip(s.Pool, mostName), Bytes: s.Bytes, Calls: calls(s.Stack)})
		}
	}
	return all
}

// A costly is a value that takes long to find, such as that of a million owners. It takes a thousandth of the
// time at most, and is as old as that needs.
type costly[T any] struct {
	value T
	next  time.Time // when it may be found again
}

func (c *costly[T]) get(now time.Time, find func() T) T {
	if !now.Before(c.next) {
		began := time.Now()
		c.value = find()
		c.next = now.Add(costlyShare * time.Since(began))
	}
	return c.value
}

// calls returns the calls of a stack in the format of a goroutine's trace.
func calls(stack string) (all []string) {
	noise := false
	for line := range strings.Lines(stack) {
		line = strings.TrimSuffix(line, "\n")
		file, isFile := strings.CutPrefix(line, "\t")
		switch {
		case isFile && len(all) > 0 && !noise && hasLine(file):
			all[len(all)-1] = clip(all[len(all)-1]+" "+path.Base(file), mostName)
		case isFile:
		case len(all) == mostCalls:
			return all
		default:
			if noise = isNoise(line); !noise {
				all = append(all, clip(line, mostName))
			}
		}
	}
	return all
}

// hasLine reports whether a file is one of source code, with a line. For functions of C it is a library.
func hasLine(file string) bool {
	_, line, _ := strings.Cut(path.Base(file), ":")
	return line != ""
}

// isNoise reports whether a function says nothing of who has allocated: it is part of each call of C, or of each
// goroutine.
func isNoise(function string) bool {
	return strings.Contains(function, "_Cfunc_") || function == "runtime.main" || function == "runtime.goexit" ||
		function == "runtime.cgocall" || function == "runtime.asmcgocall"
}

// clip returns a text of at most so many bytes.
func clip(name string, most int) string {
	if len(name) > most {
		return strings.ToValidUTF8(name[:most-3], "") + "..."
	}
	return name
}
