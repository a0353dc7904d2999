package resident

import (
	"fmt"
	"math"
	"time"

	"github.com/cheapgo/cheap/internal/page/figure"
)

// leastGrowth is the least number of bytes that are growth.
const leastGrowth = 8 << 20

// grows is rule 3. Resources of pools, and blocks of heaps, are memory of which the program knows more
// than malloc does, so they are named in place of C if they explain half of its growth.
func (j *judge) grows() (list []Verdict) {
	part := func(k Kind) (Growth, bool) {
		return j.past.grown(j.all, leastGrowth, func(p *Point) int64 { return p.parts[k] })
	}
	c, cGrows := j.cGrowth()
	if cGrows {
		list = append(list, j.whoGrows(c))
	} else if by, deviation := j.r.C.grown(); j.r.C.Steady && by >= leastGrowth+j.r.C.Live/8 { // as Watcher has looked more often
		list = append(list, j.whoGrows(Growth{By: by, Over: j.r.C.Over, Error: deviation}))
	}
	if g, ok := part(CheapInUse); ok {
		name, n := j.mostGrown("heap ", func(h Holder) int64 { return h.Bytes })
		list = append(list, Verdict{
			About: AboutHeapGrows, Bytes: g.By,
			Sentence: fmt.Sprintf("heaps of cheap: %s in use and growing%s%s", text(j.t.whole(CheapInUse)), by(g), named(", the most in heap ", name, n)),
			Do:       "call inspect.SetRate, and see inspect.WriteHeap: which calls have allocated what was not freed",
		})
	}
	if g, ok := j.past.grown(j.all, leastGrowth, func(p *Point) int64 { return p.live }); ok {
		list = append(list, Verdict{
			About: AboutGoGrows, Bytes: g.By, Sentence: fmt.Sprintf("Go: %s reachable and growing%s", text(j.r.Go.Live), by(g)),
			Do: "compare two heap profiles of net/http/pprof: go tool pprof -diff_base",
		})
	}
	if g, ok := part(GoInUse); ok && j.isOther() { // of which only the size is known
		list = append(list, Verdict{
			About: AboutGoGrows, Bytes: g.By,
			Sentence: fmt.Sprintf("the Go heap has %s, and had %s %v before: of reachable objects, garbage or stacks of goroutines, which are not told apart from outside",
				text(j.t.whole(GoInUse)), text(j.t.whole(GoInUse)-g.By), round(g.Over)),
			Do: "compare two profiles of net/http/pprof, heap and then goroutine: go tool pprof -diff_base",
		})
	}
	if g, ok := part(GoStacks); ok {
		list = append(list, Verdict{
			About: AboutRoutines, Bytes: g.By, Sentence: fmt.Sprintf("%d goroutines have %s of stacks, growing%s", j.r.Go.Goroutines, text(j.t.whole(GoStacks)), by(g)),
			Do: "see in the goroutine profile of net/http/pprof where they wait",
		})
	}
	for _, k := range []Kind{Mapped, Sandbox, SharedMemory} { // files are page cache, which is no leak
		if g, ok := part(k); ok && j.now.mapped {
			list = append(list, Verdict{
				About: AboutMappingGrows, Bytes: g.By,
				Sentence: fmt.Sprintf("%s %s and growing%s%s", text(j.t.whole(k)), j.noun(k), by(g), j.fileName(k)), Do: kindTable[k].lookAt,
			})
		}
	}
	if g, ok := part(ThreadStacks); ok {
		list = append(list, j.threads(g.By, ", growing"+by(g)))
	}
	return list
}

// cGrowth returns how C has grown: what is in use, where that is known, or all that malloc has.
func (j *judge) cGrowth() (Growth, bool) {
	least, of := int64(leastGrowth), func(p *Point) int64 { return p.parts[MallocAll] + p.parts[CInUse] }
	switch _, known := j.r.inUse(); {
	case known:
		least, of = max(least, 3*j.r.C.Error), func(p *Point) int64 { return p.parts[CInUse] }
	case !j.now.mapped:
		of = func(p *Point) int64 { return p.parts[Unseparated] }
	}
	g, ok := j.past.grown(j.all, least, of)
	for i := range j.all {
		if first := &j.all[i]; ok && j.now.time.Sub(first.time) == g.Over {
			g.Error = int64(math.Hypot(float64(j.now.cError), float64(first.cError)))
		}
	}
	return g, ok
}

// grown returns by how much the stacks have grown that have, and the standard deviation of that.
func (g *Growing) grown() (by, deviation int64) {
	variance := 0.0
	for _, s := range g.Sites {
		by += s.Grown
		variance += float64(s.GrownError) * float64(s.GrownError)
	}
	return by, int64(math.Sqrt(variance))
}

// place names the stack that has grown the most, and says how many other ones there are. It is "" unless that stack grows
// steadily, or has grown by half of what all of C has, which is by the rate of c, of the same time.
func (g *Growing) place(c Growth) string {
	if len(g.Sites) == 0 {
		return ""
	}
	first := g.Sites[0]
	if !g.Steady && 2*float64(first.Grown)*float64(c.Over) < float64(c.By)*float64(g.Over) {
		return ""
	}
	name := functions(first.Stack, 2)
	others := map[string]bool{}
	for _, s := range g.Sites {
		others[functions(s.Stack, 2)] = true
	}
	where := name + " (" + first.Library + ")"
	if first.Grown != c.By {
		where += by(Growth{first.Grown, g.Over, first.GrownError})
	}
	if n := len(others) - 1; n > 0 {
		where += ", and less in " + figure.Plural(n, "other place")
	}
	return where
}

// plusMinus writes the standard deviation of an estimate.
func plusMinus(n int64) string {
	if n <= 0 {
		return ""
	}
	return " ± " + text(n)
}

// whoGrows says who makes C grow.
func (j *judge) whoGrows(c Growth) Verdict {
	name, n := j.mostGrown("pool ", func(h Holder) int64 { return h.Bytes })
	owners, ownersGrow := j.past.grown(j.all, 16, func(p *Point) int64 { return p.holders["pool "+name].Count })
	v := Verdict{About: AboutCGrows, Bytes: c.By}
	switch {
	case name != "" && ownersGrow && n >= c.By/2:
		v.About = AboutPoolGrows
		v.Sentence = fmt.Sprintf("pool %s: %s declared by %d owners and growing, by %d owners in %v", name, text(j.now.holders["pool "+name].Bytes), j.now.holders["pool "+name].Count, owners.By, round(owners.Over))
		v.Do = "call inspect.EnableLeaks, and see suspects.txt of its page: who keeps them, or has forgotten Close"
	case name != "" && ownersGrow && n > 0 && c.By >= 2*n && len(j.r.C.Sites) == 0:
		return j.sizes(c.By)
	default:
		v.Sentence = fmt.Sprintf("C: %s%s in use%s and growing%s", text(max(j.cHeld(), j.r.C.Live)), plusMinus(j.r.C.Error), j.untouched(), by(c))
		v.Do = "see the profile of module cmem, and look for the return on which nothing frees"
		if place := j.r.C.place(c); place != "" {
			v.Sentence += ", the most in " + place
		} else if !j.r.C.Known {
			v.Sentence = fmt.Sprintf("C: %s and growing%s, while the Go heap is not the reason", text(j.cHeld()), by(c))
			v.Do = "import module cmem, which tells which call has allocated it, or run the program with cheap record"
		}
	}
	return v
}

// untouched says how much of C is resident where it is far less than what is in use: pages that were not written to have no memory.
func (j *judge) untouched() string {
	if held := j.cHeld(); j.r.C.Live-2*j.r.C.Error > held+held/4 {
		return ", of which " + text(held) + " are resident,"
	}
	return ""
}

// cHeld returns the bytes that the verdicts say C has.
func (j *judge) cHeld() int64 { return j.r.heldByC(&j.t) }

// mostGrown returns which holder has grown by most since the first point, and by how much.
func (j *judge) mostGrown(prefix string, of func(Holder) int64) (name string, by int64) {
	first := &j.all[0]
	for key, h := range j.now.holders {
		if len(key) < len(prefix) || key[:len(prefix)] != prefix {
			continue
		}
		if n := of(h) - of(first.holders[key]); n > by || n == by && n > 0 && h.Name < name {
			name, by = h.Name, n
		}
	}
	return name, by
}

func by(g Growth) string {
	return fmt.Sprintf(" by %s%s in %v", text(g.By), plusMinus(g.Error), round(g.Over))
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }

func named(before, name string, n int64) string {
	if n <= 0 {
		return ""
	}
	return before + name
}

// isOther reports whether the reading is of another process, of whose Go heap only the size is known.
func (j *judge) isOther() bool { return j.r.Go == (Go{}) }

// fileName names the largest part of a kind of files.
func (j *judge) fileName(k Kind) string {
	for _, p := range j.t.Parts {
		if p.Kind == k && p.Name != k.String() && k != GoInUse {
			return ", the most in " + p.Name
		}
	}
	return ""
}
