// Package explain says where the processor time of a program with cgo went, from a CPU
// profile.
//
// A sample of the profile belongs to the frame nearest its leaf that names.txt knows, once for
// the mechanism and once for the purpose. One thing a profile does not show: a part of each
// call of C runs where the profiler charges the Go function that has called, as it does for C
// itself. That part is estimated from entersyscall and exitsyscall, which every call passes, unless
// the profile has the instruction that was interrupted: split.go.
package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// New explains a CPU profile. One that is exact, as that of a Program may be, needs no calibration
// but the price of a call. The figures are for the advice. Counted is how many calls of C the runtime has
// counted, 0 if that is not known.
func New(p *profile.Profile, source string, cal Calibration, figures Figures, exact bool, counted uint64) *Report {
	value, unit := valueOf(p)
	groups := map[groupKey]*group{}
	whole := newGroup()
	calls := lineCalls{}
	var memory memoryTime
	k := newClassifier(p, exact)
	l, back := newLoopFinder(p), newCallbacks(k)
	keys := make([]groupKey, len(p.Sample))
	classes := make([]class, len(p.Sample))
	for i, s := range p.Sample {
		weight := float64(s.Value[value]) * unit
		if weight <= 0 {
			continue
		}
		classes[i] = k.classify(frames(s))
		keys[i] = keyOf(classes[i])
		calls.add(classes[i], weight)
	}
	for i, s := range p.Sample {
		weight := float64(s.Value[value]) * unit
		if weight <= 0 {
			continue
		}
		if callee, purpose, found := calls.ofChecks(classes[i]); found {
			classes[i].callee, classes[i].purpose = callee, purpose
			keys[i] = keyOf(classes[i])
		}
		if groups[keys[i]] == nil {
			groups[keys[i]] = newGroup()
		}
		groups[keys[i]].add(classes[i], weight, countOf(p, s))
		memory.add(classes[i], weight)
		whole.add(classes[i], weight, countOf(p, s))
		stack := frames(s)
		l.add(stack, keys[i], classes[i].mechanism, weight)
		back.add(stack, keys[i], classes[i], weight)
	}
	r := &Report{
		Source:      source,
		Names:       VersionsOf(p),
		Duration:    time.Duration(p.DurationNanos),
		CPU:         time.Duration(whole.total),
		Samples:     whole.samples,
		Exact:       exact,
		Calibration: cal,
	}
	if whole.total == 0 {
		return r
	}
	split(groups, whole, cal, exact)
	r.fill(groups, whole)
	r.fillSites(groups, whole)
	r.compare(counted)
	r.advise(figures, l, back, whole.total)
	r.adviseMemory(memory, whole.total)
	r.flame = newFlame(p, func(i int) (float64, class, *group) {
		return float64(p.Sample[i].Value[value]) * unit / whole.total, classes[i], groups[keys[i]]
	})
	return r
}

// valueOf returns which value of a sample is its processor time, and its unit in nanoseconds.
func valueOf(p *profile.Profile) (index int, unit float64) {
	for i, t := range p.SampleType {
		if t.Type == "cpu" {
			units := map[string]float64{"nanoseconds": 1, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9}
			if u := units[t.Unit]; u > 0 {
				return i, u
			}
			return i, 1
		}
	}
	return 0, 1
}

// countOf returns how many signals a sample stands for.
func countOf(p *profile.Profile, s *profile.Sample) int64 {
	for i, t := range p.SampleType {
		if t.Type == "samples" {
			return s.Value[i]
		}
	}
	return 1
}

type groupKey struct {
	function, file string
	line           int64
	callee         string
	purpose        purpose
}

func keyOf(c class) groupKey {
	return groupKey{c.site.function, c.site.file, c.site.line, c.callee, c.purpose}
}

// lineCalls is what the lines of the program call in C. cgo has the arguments of a call checked
// beside the call, so that a stack of the check does not say which call it is for.
type lineCalls map[groupKey]map[groupKey]float64

func (l lineCalls) add(c class, weight float64) {
	if c.callee == "" {
		return
	}
	line := groupKey{function: c.site.function, file: c.site.file, line: c.site.line}
	if l[line] == nil {
		l[line] = map[groupKey]float64{}
	}
	l[line][groupKey{callee: c.callee, purpose: c.purpose}] += weight
}

// ofChecks returns the largest call on the line of a check.
func (l lineCalls) ofChecks(c class) (callee string, p purpose, found bool) {
	if !c.checks || c.callee != "" {
		return "", "", false
	}
	most := 0.0
	for call, weight := range l[groupKey{function: c.site.function, file: c.site.file, line: c.site.line}] {
		if weight > most || weight == most && call.callee < callee {
			most, callee, p, found = weight, call.callee, call.purpose, true
		}
	}
	return callee, p, found
}

// A group sums up the samples of one call site and one purpose, in nanoseconds.
type group struct {
	total   float64
	samples int64
	of      map[mechanism]float64

	flat        float64 // C, as the profile shows it
	near        float64 // the part of it that is known to be of the call
	made        float64 // the part of near in functions that cgo has made
	transitions float64 // of calls
	callbacks   float64
	roots       float64
	checks      float64 // of arguments

	flatSamples, transitionSamples, callbackSamples int64

	c              Share   // what is left of flat for C itself, in nanoseconds
	call, callback float64 // what is not
}

func newGroup() *group { return &group{of: map[mechanism]float64{}} }

func (g *group) add(c class, weight float64, samples int64) {
	g.total += weight
	g.samples += samples
	g.of[c.mechanism] += weight
	if c.flat {
		g.flat += weight
		g.flatSamples += samples
		if c.near {
			g.near += weight
		}
		if c.made {
			g.made += weight
		}
	}
	switch {
	case c.mechanism == mechCallback:
		g.callbacks += weight
		g.callbackSamples += samples
	case c.transition:
		g.transitions += weight
		g.transitionSamples += samples
	}
	if c.checks {
		g.checks += weight
	}
	if c.roots && c.mechanism == mechCollection {
		g.roots += weight
	}
}

// fill writes the shares of the whole program.
func (r *Report) fill(groups map[groupKey]*group, whole *group) {
	cells := map[mechanism]map[purpose]float64{}
	for key, g := range groups {
		for m, weight := range g.of {
			if cells[m] == nil {
				cells[m] = map[purpose]float64{}
			}
			cells[m][key.purpose] += weight / whole.total
		}
	}
	for _, n := range mechanismNames {
		share := 0.0
		for _, m := range n.of {
			for _, part := range cells[m] {
				share += part
			}
		}
		r.Mechanisms = append(r.Mechanisms, Share{n.name, share, share, share})
	}
	// What C does not have of its range, the calls have, or the callbacks.
	less, more := (whole.c.Share-whole.c.Low)/whole.total, (whole.c.High-whole.c.Share)/whole.total
	widen := func(s *Share, less, more float64) {
		s.Low, s.High = max(0, s.Share-less), min(1, s.Share+more)
	}
	widen(&r.Mechanisms[0], less, more)
	if hidden := whole.call + whole.callback; hidden > 0 {
		part := whole.call / hidden
		widen(&r.Mechanisms[1], more*part, less*part)
		widen(&r.Mechanisms[2], more*(1-part), less*(1-part))
	}
	for _, n := range purposeNames {
		share := 0.0
		for _, m := range mechanismNames {
			cell := Cell{Mechanism: m.name, Purpose: n.name}
			for _, of := range m.of {
				cell.Share += cells[of][n.of]
			}
			if cell.Share > 0 {
				r.Both = append(r.Both, cell)
			}
			share += cell.Share
		}
		r.Purposes = append(r.Purposes, Share{n.name, share, share, share})
	}
	for _, n := range restNames {
		share := 0.0
		for _, part := range cells[n.of] {
			share += part
		}
		if share > 0 {
			r.Rest = append(r.Rest, Share{n.name, share, share, share})
		}
	}
	r.Roots = whole.roots / whole.total
	r.Checks = whole.checks / whole.total
}

// fillSites writes the call sites, the largest first.
func (r *Report) fillSites(groups map[groupKey]*group, whole *group) {
	sites := map[groupKey]*Site{}
	most := map[groupKey]float64{}
	for key, g := range groups {
		purpose := key.purpose
		key.purpose = ""
		s := sites[key]
		if s == nil {
			s = &Site{
				Function: key.function, File: key.file, Line: key.line, Callee: key.callee,
				Mechanisms: make([]float64, len(mechanismNames)), C: Share{Name: C},
			}
			sites[key] = s
		}
		s.Share += g.total / whole.total
		s.Checks += g.checks / whole.total
		s.C.Share += g.c.Share / whole.total
		s.C.Low += g.c.Low / whole.total
		s.C.High += g.c.High / whole.total
		for m, weight := range g.of {
			s.Mechanisms[mechanismIndex(m)] += weight / whole.total
		}
		if g.total > most[key] {
			most[key] = g.total
			s.Purpose = purposeName(purpose)
		}
	}
	for _, s := range sites {
		r.Sites = append(r.Sites, *s)
	}
	slices.SortFunc(r.Sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Function, b.Function),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Callee, b.Callee))
	})
}

func purposeName(p purpose) string {
	for _, n := range purposeNames {
		if n.of == p {
			return n.name
		}
	}
	return ""
}

// Of returns the share of a mechanism or of a purpose.
func Of(shares []Share, name string) Share {
	for _, s := range shares {
		if s.Name == name {
			return s
		}
	}
	return Share{Name: name}
}

// VersionsOf returns the versions of Go that have all names of a profile, as 1.26-1.27. It is ""
// if no version has them all.
func VersionsOf(p *profile.Profile) string {
	first, last := "1.24", "1.27"
	for _, f := range p.Function {
		n := names.exact[withoutTypes(f.Name)]
		if n == nil {
			continue
		}
		first, last = max(first, n.first), min(last, n.last)
	}
	switch {
	case first > last:
		return ""
	case first == last:
		return first
	}
	return first + "-" + last
}

// HasVersion reports whether a result of VersionsOf has a version, such as 1.26.8.
func HasVersion(versions, version string) bool {
	first, last, found := strings.Cut(versions, "-")
	if !found {
		last = first
	}
	minor := strings.Join(strings.SplitN(version, ".", 3)[:min(2, strings.Count(version, ".")+1)], ".")
	return first <= minor && minor <= last
}

// CallsC reports whether a profile has calls of C.
func CallsC(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Function, func(f *profile.Function) bool {
		return f.Name == "runtime.cgocall" || f.Name == "runtime.asmcgocall"
	})
}
