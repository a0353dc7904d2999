// Package leaks says which pools record the stacks that make their owners, and how many of
// them. Packages that look for leaks change the levels, and read what pools have recorded.
// Package own asks for the levels, and implements [Pools].
package leaks

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Level says what a pool records. Each one includes those before it.
type Level uint8

const (
	Off      Level = iota
	Sampled        // the stacks of one owner in Rate
	Advanced       // the stacks of the last uses of these owners, too
	All            // the stacks of all owners, and of their last uses
)

// Rate is the number of owners of which one is sampled, on average.
const Rate = 128

// RateAlone is that of owners that have a registration with the collector each. To make such
// an owner takes ten times as long.
const RateAlone = 16

var names = [...]string{"off", "sampled", "advanced", "all"}

// String returns the name of a level, as Parse takes it.
func (l Level) String() string {
	if int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("level %d", int(l))
}

// Parse returns the level of a name, and whether there is one.
func Parse(name string) (l Level, ok bool) {
	i := slices.Index(names[:], name)
	return Level(max(i, 0)), i >= 0
}

// A rule sets the level of the pools whose names match.
type rule struct {
	pattern string
	level   Level
}

var (
	mu     sync.Mutex
	rules  []rule // the newest at the end; no two have one pattern
	base   Level  // where nothing else is set
	raised []*Level

	generation uint64
)

// Pools are the pools of the program.
type Pools interface {
	// LevelsChanged is called after each change of a level, with no lock held.
	LevelsChanged()

	// Sites returns the sites of all pools. Those of the pools that were collected while a
	// level was raised are among them, until none is.
	Sites() []Site

	// All is what ReadPools returns.
	All() []Pool
}

// pools is nil in a program without package own.
var pools atomic.Pointer[Pools]

// SetPools says what the pools are. Package own calls it while it is initialized. A change
// before that concerns no pool: a pool that is made later asks for its level.
func SetPools(p Pools) { pools.Store(&p) }

// ArenaBlocks counts the blocks that pooled arenas have in the default heap. They stay there
// after Put, and are no leak.
var ArenaBlocks atomic.Int64

// A Pool is a pool or a memory.
type Pool struct {
	Name  string
	Level Level

	// Sites returns the stacks that made the open owners, the largest sum of sizes first. Then come the
	// stacks that made the owners that the collector had to release. It takes about 20 ns for each
	// entry of the pool's batches, the closed ones included.
	Sites func() []Site
}

// A Site describes the owners of a pool that one stack has made. If only a part of the
// owners is recorded, the numbers are estimates. The sums over all sites of a pool
// are exact for Live and Bytes.
type Site struct {
	// PCs is the stack from the caller of package own on, as [runtime.Callers] has it. It is
	// nil for owners without a recorded stack: those older than the level, and those of a
	// size that no sample has.
	PCs []uintptr

	Live  int64 // open owners
	Bytes int64 // sizes of their resources

	// Made counts the owners that the stack has made since its first one was recorded, and
	// Collected those of them that the collector had to release. The others are open, or
	// were closed or disowned. Both numbers are sums over all labels of the stack, and are
	// in the first of its sites.
	Made, Collected int64

	// Of Pool.Sites.
	Label   string        // what SetLabel has set
	Samples int64         // how many of the open owners were recorded
	Age     time.Duration // of the oldest recorded one, in whole seconds
	Uses    [][]uintptr   // the stacks of the last calls of Use of one of them, the newest first

	// Of Read.
	Pool       string
	Memory     bool   // it is a pool of a Memory
	Generation uint64 // in which the owners were made, or 0 if that is not known
}

// ReadPools returns the pools and memories of the program, those made first at the front.
func ReadPools() []Pool {
	if p := pools.Load(); p != nil {
		return (*p).All()
	}
	return nil
}

// Read is Sites of the pools of the program.
func Read() []Site {
	if p := pools.Load(); p != nil {
		return (*p).Sites()
	}
	return nil
}

// Generation returns the number of calls of Raise and undo so far, and whether a level is
// raised.
func Generation() (n uint64, is bool) {
	mu.Lock()
	defer mu.Unlock()
	return generation, len(raised) > 0
}

// Set sets the level of the pools whose names match a pattern of path.Match, also of those
// that are made later. The pattern * matches all names. Of several rules that match a name
// the one that was set last counts. The error is that of a malformed pattern.
func Set(pattern string, l Level) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return err
	}
	mu.Lock()
	rules = slices.DeleteFunc(rules, func(r rule) bool { return r.pattern == pattern })
	rules = append(rules, rule{pattern, l})
	mu.Unlock()
	tell()
	return nil
}

// SetBase sets the level of the pools for which there is no rule.
func SetBase(l Level) {
	mu.Lock()
	base = l
	mu.Unlock()
	tell()
}

// Of returns the level of a pool with a name.
func Of(name string) (l Level) {
	mu.Lock()
	defer mu.Unlock()
	l = base
	for _, r := range slices.Backward(rules) {
		if ok, _ := path.Match(r.pattern, name); ok || r.pattern == "*" { // Set has looked at the pattern
			l = r.level
			break
		}
	}
	for _, r := range raised {
		l = max(l, *r)
	}
	return l
}

// Raise sets the level of all pools to l at least, until undo is called. The owners that are
// made from now on are of the generation n or a later one.
func Raise(l Level) (n uint64, undo func()) {
	mu.Lock()
	at := &l
	raised = append(raised, at)
	generation++
	n = generation
	mu.Unlock()
	tell()
	return n, func() {
		mu.Lock()
		generation++
		raised = slices.DeleteFunc(raised, func(r *Level) bool { return r == at })
		mu.Unlock()
		tell()
	}
}

func tell() {
	if p := pools.Load(); p != nil {
		(*p).LevelsChanged()
	}
}

// SetAll sets the rules of a text such as "git.*=all,*=sampled". The first that matches a
// name counts. A level without a pattern is one for all pools. If the text has a mistake,
// no rule is set.
func SetAll(text string) error {
	type setting struct {
		pattern string
		level   Level
	}
	var all []setting
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		pattern, name := "*", part
		if i := strings.LastIndexByte(part, '='); i >= 0 {
			pattern, name = part[:i], part[i+1:]
		}
		l, ok := Parse(name)
		if !ok {
			return fmt.Errorf("%q is not off, sampled, advanced or all", name)
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q: %w", pattern, err)
		}
		all = append(all, setting{pattern, l})
	}
	for _, s := range slices.Backward(all) {
		Set(s.pattern, s.level) // the pattern is well formed
	}
	return nil
}
