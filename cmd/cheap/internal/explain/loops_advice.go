package explain

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/page/figure"
)

// adviseLoops is about loops in which the way to C takes a quarter of what C does, or longer.
func (r *Report) adviseLoops(l *loopFinder) {
	trees := r.loopTrees(l)
	l.nest(trees)
	r.addCode(l, trees)
	for _, t := range trees {
		if t.crossing() > t.inC/4 {
			r.Advice = append(r.Advice, r.adviceOf(t, l.recursive[t.loop.Function]))
		}
	}
}

// loopTrees returns the loops with their calls. The crossings of a call site are divided among the loops by
// what the profile has of each.
func (r *Report) loopTrees(l *loopFinder) map[Loop]*loopTree {
	sites := map[groupKey]Site{}
	for _, s := range r.Sites {
		sites[groupKey{function: s.Function, file: s.File, line: s.Line, callee: s.Callee}] = s
	}
	total := map[groupKey]float64{}
	for _, s := range l.calls {
		s.key.purpose = ""
		total[s.key] += s.weight
	}
	type callOf struct {
		loop   Loop
		callee string
	}
	trees, calls := map[Loop]*loopTree{}, map[callOf]*LoopCall{}
	for _, s := range l.calls {
		w, found := l.choose(s)
		key := s.key
		key.purpose = ""
		site := sites[key]
		// A List is one call already, and so is what package libc does.
		if !found || site.Mechanisms == nil || site.Purpose == Strings || strings.HasPrefix(key.callee, "C.cheap_") {
			continue
		}
		t := trees[w.loop]
		if t == nil {
			t = &loopTree{loop: w.loop}
			trees[w.loop] = t
		}
		call := calls[callOf{w.loop, key.callee}]
		if call == nil {
			call = &LoopCall{Callee: key.callee, By: w.by, Line: w.line, Count: w.count}
			calls[callOf{w.loop, key.callee}] = call
		}
		call.Count = both(call.Count, w.count, call.Line == w.line && call.By == w.by)
		call.Line = min(call.Line, w.line)
		part := s.weight / total[key]
		call.Crossing += site.Mechanisms[mechanismIndex(mechCrossing)] * part
		t.inC += site.Mechanisms[mechanismIndex(mechC)] * part
		t.checks += site.Checks * part
	}
	for of, call := range calls {
		trees[of.loop].calls = append(trees[of.loop].calls, *call)
	}
	for _, t := range trees {
		slices.SortFunc(t.calls, func(a, b LoopCall) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(b.Crossing, a.Crossing), cmp.Compare(a.Callee, b.Callee))
		})
	}
	return trees
}

// nest puts loops into those around them.
func (l *loopFinder) nest(trees map[Loop]*loopTree) {
	within := map[Loop]map[Loop]int64{} // the loops in a loop, with the line that leads there
	for _, s := range l.calls {
		w, _ := l.choose(s)
		at := slices.Index(s.loops, w)
		if at < 0 || trees[w.loop] == nil {
			continue
		}
		inner := w.loop
		for _, outer := range s.loops[at+1:] {
			if trees[outer.loop] == nil || outer.loop == inner {
				continue
			}
			if within[outer.loop] == nil {
				within[outer.loop] = map[Loop]int64{}
			}
			within[outer.loop][inner] = outer.line
			inner = outer.loop
		}
	}
	for outer, list := range within {
		for inner, line := range list {
			trees[outer].inner = append(trees[outer].inner, innerLoop{line, trees[inner]})
		}
		slices.SortFunc(trees[outer].inner, func(a, b innerLoop) int {
			return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.loop.String(), b.loop.String()))
		})
	}
}

// addCode adds the Go code that is only there for the calls of a loop: that of the functions of a binding
// which it calls for them, with what they allocate and the collections for that. A function that takes much
// longer than its calls has other work to do, which stays.
func (r *Report) addCode(l *loopFinder, trees map[Loop]*loopTree) {
	type function struct {
		loop Loop
		by   string
	}
	crossing, code := map[function]float64{}, map[function]float64{}
	for loop, t := range trees {
		for _, c := range t.calls {
			crossing[function{loop, c.By}] += c.Crossing
		}
	}
	perAlloc := 1.0
	if alloc := Of(r.Mechanisms, Allocation).Share; alloc > 0 {
		perAlloc += max(0, Of(r.Mechanisms, Collection).Share-r.Roots) / alloc
	}
	for _, s := range l.code {
		share := s.weight / float64(r.CPU)
		if s.alloc {
			share *= perAlloc
		}
		for _, w := range slices.Concat(s.loops, s.funcs) {
			if f := (function{w.loop, w.by}); crossing[f] > 0 {
				code[f] += share
				break
			}
		}
	}
	for f, share := range code {
		if share <= 3*crossing[f] {
			trees[f.loop].code += share
		}
	}
}

// A loopTree is a loop that gets advice, with those in it.
type loopTree struct {
	loop   Loop
	calls  []LoopCall
	inner  []innerLoop
	inC    float64 // the share of C itself
	code   float64 // that of Go code which is there for the calls
	checks float64 // that of the checks of their arguments, a part of the crossings
}

type innerLoop struct {
	line int64 // of the outer loop, which leads there
	*loopTree
}

func (t *loopTree) crossing() (sum float64) {
	for _, c := range t.calls {
		sum += c.Crossing
	}
	return sum
}

// adviceOf says what to do about a loop. A function of one's own has arguments that cgo need not check, and
// no Go code around it but the call. In a function that calls itself this may cost more than it saves: what C
// finds for the rounds below comes back in a buffer for each of them, which escapes, and whose pointers cgo
// checks. A walk of a syntax tree took 1.58 of the time so.
func (r *Report) adviceOf(t *loopTree, recursive bool) Advice {
	sum := t.crossing()
	large := 0 // those that matter
	for _, c := range t.calls {
		if c.Crossing >= leastAdvice/4 {
			large++
		}
	}
	// Where one function makes most of the crossings, one function a round saves little.
	round := roundOf(t.calls, sum)
	inRound := large > 1 && round <= sum*2/3
	a := Advice{
		Site: t.loop.String() + ", " + figure.Plural(len(t.calls), "function") + " of C", Now: sum + t.code, Link: "docs/guide.md#a-list-for-many-calls",
		Loop: &t.loop, Calls: t.calls, Sketch: t.sketch(inRound),
	}
	if recursive {
		a.Open, a.Expected = true, a.Now
		a.Text = "The function calls itself, so nothing is promised of one function of C that makes the calls of a round: a buffer for what C finds for the rounds below escapes, and cgo checks the pointers in it. Most is saved where C does the whole walk, and gives numbers to Go."
		return a
	}
	left, calls := round/sum, sum-t.checks
	if inRound {
		a.Text = fmt.Sprintf("One function of C that makes the calls of a round leaves one crossing of them; one for %d rounds leaves %s of the processor time. Where arguments and results are numbers and pointers, a List of package calls does the same without C of your own.", batch, figure.Percent(calls*left/batch))
	} else {
		left /= batch
		a.Text = fmt.Sprintf("One function of C that makes the calls of %d rounds leaves one crossing of them. Where arguments and results are numbers and pointers, package calls does the same without C of your own: List where the arguments are known before, List.Repeat for a cursor, whose next call depends on the one before.", batch)
	}
	a.Text += " A function that only reads a field of a struct needs no call: Go reads it."
	a.Expected = calls * left
	a.Basis = figure.Times(left) + " of the crossings"
	if t.checks > 0 {
		a.Text += " Give your function of C numbers, char *, and uintptr_t for addresses in C memory, also in what it fills: cgo checks each other pointer in a struct or a buffer, at each call."
		a.Basis += fmt.Sprintf(" without the checks of arguments (%s)", figure.Percent(t.checks))
	}
	if t.code > 0 {
		a.Basis += fmt.Sprintf(", none of the Go code around them (%s)", figure.Percent(t.code))
	}
	crossing := Of(r.Mechanisms, Crossing).Share - r.Checks
	switch cal := r.Calibration; {
	case r.Calls != nil && crossing > 0: // as many as were counted, in the proportion of their time
		a.Fewer = float64(r.Calls.Count) * min(1, calls*(1-left)/crossing)
		a.Basis += fmt.Sprintf(", %s of %s calls fewer", about(a.Fewer), figure.Thousands(int(r.Calls.Count)))
	case cal.CallNs > 0:
		a.Fewer = calls * (1 - left) * float64(r.CPU) / cal.CallNs
		a.Basis += fmt.Sprintf(", %s fewer at %s each (%s, %s)", about(a.Fewer), figure.Duration(cal.CallNs), cal.Go, cal.From)
	}
	a.Basis += "; C itself stays"
	return a
}

// about rounds a number of calls, which is an estimate, to two digits.
func about(calls float64) string {
	unit := 1
	for int(calls)/unit >= 100 {
		unit *= 10
	}
	return "about " + figure.Thousands((int(calls)+unit/2)/unit*unit)
}

// roundOf estimates the share of the crossings of one function a round. What is called once a round
// says it; what is called at most once says at least it.
func roundOf(calls []LoopCall, sum float64) float64 {
	once, n, most := 0.0, 0, 0.0
	for _, c := range calls {
		switch c.Count {
		case onceARound:
			once += c.Crossing
			n++
		case atMostOnce:
			most = max(most, c.Crossing)
		}
	}
	switch {
	case n > 0:
		return max(once/float64(n), most)
	case most > 0:
		return most
	}
	return sum / float64(len(calls))
}

// String names a loop in one line.
func (l Loop) String() string {
	text := shortName(l.Function)
	switch {
	case l.Line > 0:
		text += fmt.Sprintf(" %s:%d-%d, %s", filepath.Base(filepath.ToSlash(l.File)), l.Line, l.End, l.Kind)
	case l.Kind == kindRecursion:
		text += ", which calls itself"
	}
	return text
}

// sketch writes a function of C that does what a loop does in C. Arguments and conditions are the
// reader's.
func (t *loopTree) sketch(round bool) string {
	name := "all"
	if _, local, found := cutLast(strings.TrimRight(inLiteral.ReplaceAllString(t.loop.Function, ""), "."), "."); found && local != "" {
		name = strings.ToLower(local)
	}
	var b strings.Builder
	if round {
		fmt.Fprintf(&b, "static int %s_round(…) {\n", name)
		t.write(&b, "\t", nil)
	} else {
		fmt.Fprintf(&b, "static int %s_rounds(…, int n) {\n\tfor (int i = 0; i < n; i++) {\n", name)
		t.write(&b, "\t\t", nil)
		b.WriteString("\t}\n")
	}
	b.WriteString("\treturn …;\n}\n")
	return b.String()
}

// deepest is how many loops a sketch has in each other.
const deepest = 3

// write writes the calls of a loop and the loops in it, in the order of the source. The loops around it
// are there already: functions may call each other.
func (t *loopTree) write(b *strings.Builder, indent string, around []*loopTree) {
	around = append(around, t)
	inner := t.inner
	before := func(line int64) {
		for ; len(inner) > 0 && inner[0].line <= line; inner = inner[1:] {
			if len(around) > deepest || slices.Contains(around, inner[0].loopTree) {
				continue
			}
			fmt.Fprintf(b, "%sfor (…) { // %s\n", indent, inner[0].loop)
			inner[0].write(b, indent+"\t", around)
			b.WriteString(indent + "}\n")
		}
	}
	for _, c := range t.calls {
		before(c.Line - 1)
		line := strings.TrimPrefix(c.Callee, "C.") + "(…);"
		switch c.Count {
		case atMostOnce:
			line = "if (…) " + line
		case severalARound:
			line = "while (…) " + line
		}
		var notes []string
		if c.By != "" {
			notes = append(notes, c.By)
		}
		if c.Count != "" {
			notes = append(notes, c.Count)
		}
		if len(notes) > 0 {
			line += " // " + strings.Join(notes, ", ")
		}
		b.WriteString(indent + line + "\n")
	}
	before(math.MaxInt64)
}
