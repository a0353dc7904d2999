package own

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/watch/leaks"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
)

// A LeakLevel says for which owners a pool records the stack that made them.
// Package inspect shows the stacks of the owners that are open, and of those that
// the collector had to release. The level is off at first.
//
// The environment variable CHEAP_LEAKS sets levels when the program starts:
//
//	CHEAP_LEAKS=sampled
//	CHEAP_LEAKS='git.*=all,*=sampled'
//
// Names are matched with patterns of [path.Match], and the first pattern that matches
// counts. The pattern * matches all names.
type LeakLevel uint8

const (
	// LeaksOff records nothing, unless Options.Trace or OnCollect asks for that.
	LeaksOff LeakLevel = iota

	// LeaksSampled records one owner in 128, on average, chosen at random. Of owners that
	// have a registration with the collector of their own it records one in 16: with
	// Options.Batch 1, or for a resource of Options.Pinned bytes or more.
	LeaksSampled

	// LeaksAdvanced is LeaksSampled, and records the stacks of the last four calls of Use
	// and TryUse of these owners, too. Each of these calls takes as long as a stack with
	// Options.Trace.
	LeaksAdvanced

	// LeaksAll records each owner, and its last uses.
	LeaksAll
)

// The levels are those of package leaks.
var _ = [1]struct{}{}[uint8(LeaksAll)-uint8(leaks.All)]

// String returns off, sampled, advanced or all.
func (l LeakLevel) String() string { return leaks.Level(l).String() }

// levels serializes the changes of levels of pools. kept has the tables of pools by their
// serial numbers, while a level is raised. A test that has raised it reads them also if a
// pool was collected.
var levels struct {
	sync.Mutex
	kept map[uint64]keptTables
}

type keptTables struct {
	name   string
	memory bool
	tables []*batch.Table
}

func setLevelsFromEnvironment() {
	if err := leaks.SetAll(os.Getenv("CHEAP_LEAKS")); err != nil {
		fmt.Fprintln(os.Stderr, "cheap: own: CHEAP_LEAKS is ignored:", err)
	}
}

// SetLeakLevel sets the leak level of the pools and memories whose names match a pattern of
// [path.Match], also of those that are made later. The pattern * matches all names. The
// newest setting that concerns a pool counts. Owners that were made before the call are not
// recorded. SetLeakLevel panics if the pattern is malformed or there is no such level.
//
// SetLeakLevel may be called at any time. It ends the open batches of the pools, which costs
// about a microsecond for each batch.
func SetLeakLevel(pattern string, l LeakLevel) {
	if l > LeaksAll {
		panicMisuse("own", "SetLeakLevel", "there is no level %d; use one of the constants", l)
	}
	if err := leaks.Set(pattern, leaks.Level(l)); err != nil {
		panicMisuse("own", "SetLeakLevel", "the pattern %q is malformed; see path.Match", pattern)
	}
}

// setLevel sets the level as it was set for the name. Rooms have that of their pool.
func (p *Pool) setLevel() {
	levels.Lock()
	name := p.spec.Name
	if p.spec.Rooms {
		name = strings.TrimSuffix(name, roomsSuffix)
	}
	l := leaks.Of(name)
	generation, raised := leaks.Generation()
	if p.base == nil && (l != leaks.Off || raised) {
		p.base = new(batch.Table)
	}
	table, fresh := p.base, false
	if !raised {
		p.raised = nil
	} else {
		if n := len(p.raised); n == 0 || p.raised[n-1].Generation != generation {
			p.raised = append(p.raised, &batch.Table{Generation: generation})
			fresh = true
		}
		table = p.raised[len(p.raised)-1]
		if levels.kept == nil {
			levels.kept = map[uint64]keptTables{}
		}
		levels.kept[p.serial] = keptTables{p.spec.Name, p.spec.Heap != nil, p.raised}
	}
	before := p.spec.SetLevel(l, table)
	levels.Unlock()
	if l != before || fresh {
		p.intake.Retire() // so that the next batch begins with the new level
	}
}

func setLevels() {
	if _, raised := leaks.Generation(); !raised {
		levels.Lock()
		levels.kept = nil
		levels.Unlock()
	}
	for w := range rostered() {
		if p := w.Value(); p != nil {
			p.setLevel()
		}
	}
}

// tables returns the tables of the pool.
func (p *Pool) tables() []*batch.Table {
	levels.Lock()
	defer levels.Unlock()
	if p.base == nil {
		return nil
	}
	return append([]*batch.Table{p.base}, p.raised...)
}

// mostLabels is the largest number of labels of a stack that have a site each.
const mostLabels = 16

// readLeaks describes the pools and memories.
func readLeaks() (all []leaks.Pool) {
	for _, i := range Pools() {
		all = append(all, leaks.Pool{Name: i.Name, Level: i.pools[0].spec.Level(), Sites: i.sites})
	}
	return all
}

func (i PoolInfo) sites() []leaks.Site {
	var sites []leaks.Site
	for _, p := range i.pools {
		sites = append(sites, p.sites()...)
	}
	slices.SortStableFunc(sites, func(x, y leaks.Site) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(y.Live, x.Live), cmp.Compare(y.Collected, x.Collected))
	})
	return sites
}

func (p *Pool) sites() (sites []leaks.Site) {
	var t batch.Tally
	for _, b := range p.intake.Batches() {
		intake.Tally(b, &t)
	}
	rows := t.Rows()
	slices.SortStableFunc(rows, func(x, y *batch.Row) int { return cmp.Compare(y.Bytes, x.Bytes) })
	type group struct{ first, last, labels int } // the sites of a stack, as numbers in sites
	groups := map[batch.Stack]*group{}
	for _, r := range rows {
		s := leaks.Site{Label: r.Label, Live: r.Live, Bytes: r.Bytes, Samples: r.Samples}
		var stack batch.Stack
		if r.Origin != nil {
			stack, s.PCs = r.Origin.Stack(), r.Origin.PCs()
			s.Age = time.Duration(batch.Age(r.Born)) * time.Second
		}
		for _, u := range r.Uses {
			s.Uses = append(s.Uses, u.PCs())
		}
		g := groups[stack]
		if g == nil {
			g = &group{first: len(sites)}
			groups[stack] = g
		}
		if g.labels++; g.labels <= mostLabels {
			g.last = len(sites)
			sites = append(sites, s)
			continue
		}
		rest := &sites[g.last] // is for all other labels
		rest.Label, rest.Uses = "", nil
		rest.Live += s.Live
		rest.Bytes += s.Bytes
		rest.Samples += s.Samples
		rest.Age = max(rest.Age, s.Age)
	}
	for _, table := range p.tables() {
		for _, c := range table.Counts() {
			var stack batch.Stack
			s := leaks.Site{}
			if c.Origin != nil {
				stack, s.PCs = c.Origin.Stack(), c.Origin.PCs()
			}
			g := groups[stack]
			if g == nil {
				g = &group{first: len(sites)}
				groups[stack] = g
				sites = append(sites, s)
			}
			sites[g.first].Made += c.Made
			sites[g.first].Collected += c.Collected
		}
	}
	return sites
}

// readSites returns the sites of all pools, for tests.
func readSites() (all []leaks.Site) {
	levels.Lock()
	kept := maps.Clone(levels.kept)
	levels.Unlock()
	for w := range rostered() {
		p := w.Value()
		if p == nil {
			continue
		}
		delete(kept, p.serial)
		pool := leaks.Site{Pool: p.spec.Name, Memory: p.spec.Heap != nil}
		t := batch.Tally{Exact: true}
		for _, b := range p.intake.Batches() {
			intake.Tally(b, &t)
		}
		for _, r := range t.Rows() {
			s := pool
			s.Live, s.Bytes, s.Generation = r.Live, r.Bytes, r.Generation
			if r.Origin != nil {
				s.PCs = r.Origin.PCs()
			}
			all = append(all, s)
		}
		all = appendCounts(all, pool, p.tables())
	}
	for _, k := range kept { // of pools that were collected
		all = appendCounts(all, leaks.Site{Pool: k.name, Memory: k.memory}, k.tables)
	}
	return all
}

// appendCounts appends what tables have counted to all.
func appendCounts(all []leaks.Site, pool leaks.Site, tables []*batch.Table) []leaks.Site {
	for _, t := range tables {
		for _, c := range t.Counts() {
			s := pool
			s.Generation, s.Made, s.Collected = t.Generation, c.Made, c.Collected
			if c.Origin != nil {
				s.PCs = c.Origin.PCs()
			}
			all = append(all, s)
		}
	}
	return all
}
