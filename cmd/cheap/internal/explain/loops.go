package explain

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// The calls of a binding are one-line functions, which its user cannot change. What the user can
// change is the loop that calls them: the innermost one around at least two functions of C, in source
// outside the packages that import C. A function that calls itself is a loop as well. Where the
// source is not on this machine, the function takes the place of the loop.

// A Loop is a part of the program that calls C again and again.
type Loop struct {
	Kind     string `json:"kind"` // for, range, recursion or function
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	End      int    `json:"end,omitempty"` // its last line, 0 if it is not known
}

// The kinds of loops.
const (
	kindFor       = "for"
	kindRange     = "range"
	kindRecursion = "recursion"
	kindFunction  = "function"
)

// A LoopCall is a function of C that a loop calls.
type LoopCall struct {
	Callee   string  `json:"callee"`
	By       string  `json:"by,omitempty"` // the function that the loop calls for it, "" if that is C
	Line     int64   `json:"line"`         // the first line of the loop that does
	Crossing float64 `json:"crossing"`     // its share of the processor time, the crossing alone
	Count    string  `json:"count"`        // as the source says it, "" without source
}

// A way is how a loop comes to a function of C in one stack.
type way struct {
	loop  Loop
	line  int64 // of the loop, that calls
	by    string
	count string
}

// A loopFinder looks for the loops in the stacks of one profile.
type loopFinder struct {
	sources   *sources
	bindings  map[string]bool // the packages that call C
	recursive map[string]bool // functions that are twice in a stack
	root      string          // the folder of the standard library, with a slash, "" if it is not known
	trimmed   bool            // the program was built with -trimpath

	calls   []loopSample
	code    []loopSample // Go code of a binding, beside its calls of C
	callees map[Loop]map[string]bool
}

// A loopSample is a sample of a call of C, with all that is around the call.
type loopSample struct {
	key    groupKey
	weight float64
	alloc  bool  // the Go code of a binding allocates
	loops  []way // the innermost first
	funcs  []way // the functions
}

func newLoopFinder(p *profile.Profile) *loopFinder {
	l := &loopFinder{sources: newSources(), bindings: map[string]bool{}, recursive: map[string]bool{}, callees: map[Loop]map[string]bool{}}
	for _, f := range p.Function {
		if isWrapper(f.Name) {
			l.bindings[packageOf(f.Name)] = true
		}
		if base, found := strings.CutSuffix(filepath.ToSlash(f.Filename), "runtime/proc.go"); found && packageOf(f.Name) == "runtime" {
			l.root, l.trimmed = base, base == ""
		}
	}
	for _, s := range p.Sample {
		seen := map[string]bool{}
		for _, f := range frames(s) {
			if !f.isC && seen[f.function] {
				l.recursive[f.function] = true
			}
			seen[f.function] = true
		}
	}
	return l
}

// isWrapper reports whether a function is what cgo has made for a function of C.
func isWrapper(function string) bool {
	_, local, found := cutLast(function, ".")
	return found && slices.ContainsFunc(cgoKinds, func(kind string) bool { return strings.HasPrefix(local, kind) })
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// isStandard reports whether a frame is of the standard library.
func (l *loopFinder) isStandard(f frame) bool {
	if isRuntime(f) {
		return true
	}
	pkg := packageOf(f.function)
	if l.trimmed {
		return strings.HasPrefix(filepath.ToSlash(f.file), pkg+"/") && !strings.Contains(strings.SplitN(pkg, "/", 2)[0], ".") && pkg != "main"
	}
	return l.root != "" && strings.HasPrefix(filepath.ToSlash(f.file), l.root)
}

// isBinding reports whether a frame is of a package that calls C. Package main is the user's in any case.
func (l *loopFinder) isBinding(f frame) bool {
	pkg := packageOf(f.function)
	return pkg != "main" && (l.bindings[pkg] || isOurs(pkg))
}

// add notes what is around the call of C in a stack.
func (l *loopFinder) add(stack []frame, key groupKey, m mechanism, weight float64) {
	first := slices.IndexFunc(stack, func(f frame) bool { return !f.isC && isWrapper(f.function) })
	if first < 0 {
		l.addCode(stack, key, m, weight)
		return
	}
	if key.callee == "" || key.purpose == purposeStrings {
		return
	}
	end := len(stack)
	for i := first + 1; i < len(stack); i++ {
		if exportOf(stack[i].function) != "" { // C has called this, in a loop of its own
			end = i
			break
		}
	}
	s := loopSample{key: key, weight: weight}
	l.walk(&s, stack[:end], first, l.isBinding)
	if len(s.funcs) == 0 { // nothing but the package itself, and perhaps its tests
		l.walk(&s, stack[:end], first, func(f frame) bool { return isOurs(packageOf(f.function)) })
	}
	for _, w := range slices.Concat(s.loops, s.funcs) {
		if l.callees[w.loop] == nil {
			l.callees[w.loop] = map[string]bool{}
		}
		l.callees[w.loop][key.callee] = true
	}
	l.calls = append(l.calls, s)
}

// addCode notes Go code of a binding, with what it allocates, if a function outside calls it. It is not C,
// and not a text for Go, which has to be made in any case.
func (l *loopFinder) addCode(stack []frame, key groupKey, m mechanism, weight float64) {
	in := slices.IndexFunc(stack, func(f frame) bool { return !f.isC && !isRuntime(f) })
	if in < 0 || !l.isBinding(stack[in]) || key.callee != "" || key.purpose == purposeStrings {
		return
	}
	for in+1 < len(stack) && l.isBinding(stack[in+1]) {
		in++
	}
	s := loopSample{weight: weight, alloc: m == mechAlloc}
	l.walk(&s, stack[:min(in+2, len(stack))], in, l.isBinding)
	l.code = append(l.code, s)
}

// walk goes from a call of C outwards, and notes the loops and functions that are not left out.
func (l *loopFinder) walk(s *loopSample, stack []frame, first int, leftOut func(frame) bool) {
	count := onceARound // of what is between the call and the loop
	seen := map[string]bool{}
	called := stack[first] // by the next frame
	for i := first + 1; i < len(stack); i++ {
		f := stack[i]
		if f.isC || isCheckLiteral(stack[i:]) {
			continue
		}
		place := l.sources.place(f, localName(called.function), headerOf(stack[i:]))
		if !leftOut(f) && !l.isStandard(f) && !seen[f.function] {
			by := ""
			if !isWrapper(called.function) {
				by = shortName(called.function)
			}
			if place != nil {
				for _, loop := range place.loops() {
					kind := kindFor
					if _, ok := loop.(*ast.RangeStmt); ok {
						kind = kindRange
					}
					at := Loop{kind, f.function, f.file, place.set.PositionFor(loop.Pos(), false).Line, place.set.PositionFor(loop.End(), false).Line}
					s.loops = append(s.loops, way{at, f.line, by, combine(count, place.rounds(loop))})
				}
			}
			rounds := unknownRounds
			if place != nil {
				rounds = combine(count, place.rounds(nil))
			}
			if l.recursive[f.function] {
				s.loops = append(s.loops, way{Loop{kindRecursion, f.function, f.file, 0, 0}, f.line, by, rounds})
			}
			s.funcs = append(s.funcs, way{Loop{kindFunction, f.function, f.file, 0, 0}, f.line, by, rounds})
		}
		switch {
		case seen[f.function]:
		case place == nil:
			count = unknownRounds
		default:
			count = combine(count, place.rounds(nil))
		}
		seen[f.function], called = true, f
	}
}

// headerOf returns the line of the loop over a function whose body the first frame is, 0 for other
// frames. The function with the loop is further out, at that line.
func headerOf(stack []frame) int64 {
	function, _, found := cutLast(stack[0].function, "-range")
	if !found {
		return 0
	}
	for _, f := range stack[1:] {
		if f.function == function || strings.HasPrefix(f.function, function+"-range") {
			return f.line
		}
	}
	return 0
}

// localName is the name by which source calls a function, "" for a literal.
func localName(function string) string {
	_, local, _ := cutLast(function, ".")
	for _, prefix := range cgoKinds {
		local = strings.TrimPrefix(local, prefix)
	}
	if inLiteral.MatchString("." + local) {
		return ""
	}
	return local
}

// combine says how often something is done that is done so often in what is done so often.
func combine(a, b string) string {
	switch {
	case a == unknownRounds || b == unknownRounds:
		return unknownRounds
	case a == severalARound || b == severalARound:
		return severalARound
	case a == atMostOnce || b == atMostOnce:
		return atMostOnce
	}
	return onceARound
}

// both says how often something is done in two ways, which may be the same one.
func both(a, b string, same bool) string {
	switch {
	case same || a == atMostOnce && b == atMostOnce: // such as the two ways of an if
		return combine(a, b)
	case a == unknownRounds || b == unknownRounds:
		return unknownRounds
	}
	return severalARound
}

// choose returns the loop to which a sample belongs: the innermost around two functions of C, the
// innermost of all, the function around two of them, the function.
func (l *loopFinder) choose(s loopSample) (w way, found bool) {
	for _, list := range [][]way{s.loops, s.funcs} {
		for _, w := range list {
			if len(l.callees[w.loop]) > 1 {
				return w, true
			}
		}
		if len(list) > 0 {
			return list[0], true
		}
	}
	return way{}, false
}
