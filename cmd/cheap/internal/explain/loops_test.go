package explain

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// loopBinding is a binding of one-line functions, loopProgram what a user has made with it. A comment
// names a line.
const (
	loopBinding = `package bind

// #include <stddef.h>
// static int at = 0;
// static void first(void) { at = 0; }
// static int valid(void) { return at < 1000; }
// static void next(void) { at++; }
// static int key(void) { return at; }
// static int value(void) { return at; }
import "C"

func First()     { C.first() }          // first
func Valid() bool { return C.valid() != 0 } // valid
func Next()      { C.next() }           // next
func Key() int   { return int(C.key()) } // key
func Value() int { return int(C.value()) } // value

func Sum(n int) (sum int) {
	for range n {
		sum += Key() // sum-key
	}
	return sum
}
`
	loopProgram = `package main

import "example.com/prog/bind"

func main() {
	for range 3000 { // outer
		scan() // main-scan
	}
}

var sink int

func scan() {
	for bind.First(); bind.Valid(); bind.Next() { // scan-for
		sink += bind.Key() // scan-key
		if sink%2 == 0 {
			sink += bind.Value() // scan-value
		}
	}
}

func tree(depth int) {
	sink += bind.Key() // tree-key
	for range 2 {
		if depth > 0 {
			tree(depth - 1) // tree-tree
		}
	}
	sink += bind.Value() // tree-value
}

func each(yield func(int) bool) {
	for bind.Valid() { // each-valid
		if !yield(bind.Key()) { // each-key
			return
		}
	}
}

func ranges() {
	for k := range each { // ranges-range
		sink += k + bind.Value() // ranges-value
	}
}

func jobs(list []int) {
	for range list { // jobs-range
		go func() {
			bind.Next() // jobs-next
			sink += bind.Value() // jobs-value
		}()
	}
}

func sums() {
	for range 10 { // sums-range
		sink += bind.Sum(100) // sums-sum
		bind.Next() // sums-next
	}
}

func skips() {
	for i := range 10 { // skips-range
		if i == 3 {
			continue
		}
		bind.Next() // skips-next
		sink += bind.Value() // skips-value
	}
}

func single() {
	for range 100 { // single-range
		bind.Next() // single-next
	}
}

func straight() {
	bind.Next() // straight-next
	sink += bind.Value() // straight-value
}
`
)

// lineNamed is the line with a name, in the comment at its end.
func lineNamed(t *testing.T, name string) (file string, line int64) {
	t.Helper()
	for file, text := range map[string]string{"bind/bind.go": loopBinding, "main.go": loopProgram} {
		for i, line := range strings.Split(text, "\n") {
			if strings.HasSuffix(line, "// "+name) {
				return file, int64(i + 1)
			}
		}
	}
	t.Fatalf("no line %s", name)
	return "", 0
}

// loopProfile makes a profile of stacks, the leaf first. A frame of the program is function:line, with
// the name of the line. The files are in dir.
func loopProfile(t *testing.T, dir string, stacks []string) *profile.Profile {
	t.Helper()
	p := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		DurationNanos: int64(time.Second),
	}
	for _, stack := range stacks {
		s := &profile.Sample{Value: []int64{10, 10 * int64(10*time.Millisecond)}}
		for word := range strings.FieldsSeq(stack) {
			name, at, found := strings.Cut(word, ":")
			file, line := "/go/src/runtime/proc.go", int64(1)
			if n, err := strconv.Atoi(at); err == nil {
				line = int64(n)
			} else if found {
				file, line = lineNamed(t, at)
				file = filepath.Join(dir, file)
			} else if strings.HasPrefix(name, "testing.") {
				file = "/go/src/testing/benchmark.go"
			} else if strings.Contains(name, "_Cfunc_") {
				file = "_cgo_gotypes.go"
			}
			fn := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name, Filename: file}
			p.Function = append(p.Function, fn)
			loc := &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: fn, Line: line}}}
			p.Location = append(p.Location, loc)
			s.Location = append(s.Location, loc)
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

// cross is a stack of the way to a function of C, below the name of its wrapper in the binding.
func cross(callee, wrapper string) string {
	return "runtime.exitsyscall" + exit + " example.com/prog/bind._Cfunc_" + callee + " example.com/prog/bind." + wrapper + ":" + callee + " "
}

func TestLoops(t *testing.T) {
	dir := aFolder(t, map[string]string{"bind/bind.go": loopBinding, "main.go": loopProgram})
	const main = " main.main:main-scan"
	tree := " main.tree:tree-tree main.tree:tree-tree main.main:main-scan"
	for name, test := range map[string]struct {
		stacks []string
		want   []string // the loops, with the functions of C and how often each is called
	}{
		"for": {[]string{
			cross("first", "First") + "main.scan:scan-for" + main,
			cross("valid", "Valid") + "main.scan:scan-for" + main,
			cross("next", "Next") + "main.scan:scan-for" + main,
			cross("key", "Key") + "main.scan:scan-key" + main,
			cross("value", "Value") + "main.scan:scan-value" + main,
		}, []string{
			"main.main main.go:outer, range C.first once a round",
			"main.scan main.go:scan-for, for C.next once a round C.valid once a round C.key once a round C.value at most once a round",
		}},
		"recursion": {[]string{
			cross("key", "Key") + "main.tree:tree-key" + tree,
			cross("value", "Value") + "main.tree:tree-value" + tree,
			cross("value", "Value") + "main.tree:tree-value main.main:main-scan",
		}, []string{"main.tree, which calls itself C.key once a round C.value once a round"}},
		"a loop in a recursion": {[]string{
			cross("next", "Next") + "main.scan:scan-for main.scan:scan-for" + main,
			cross("key", "Key") + "main.scan:scan-key main.scan:scan-for" + main,
		}, []string{"main.scan main.go:scan-for, for C.next once a round C.key once a round"}},
		"a function as a range": {[]string{
			cross("valid", "Valid") + "main.each:each-valid main.ranges:ranges-range",
			cross("key", "Key") + "main.each:each-key main.ranges:ranges-range",
			cross("value", "Value") + "main.ranges-range1:ranges-value main.each:each-key main.ranges:ranges-range",
		}, []string{
			"main.each main.go:each-valid, for C.valid once a round C.key once a round C.value once a round",
		}},
		"goroutines": {[]string{
			cross("next", "Next") + "main.jobs.func1:jobs-next",
			cross("value", "Value") + "main.jobs.func1:jobs-value",
		}, []string{"main.jobs.func1 C.next once a round C.value once a round"}},
		"a loop of the binding": {[]string{
			cross("key", "Key") + "example.com/prog/bind.Sum:sum-key main.sums:sums-sum",
			cross("next", "Next") + "main.sums:sums-next",
		}, []string{"main.sums main.go:sums-range, range C.key several times a round C.next once a round"}},
		"continue": {[]string{
			cross("next", "Next") + "main.skips:skips-next",
			cross("value", "Value") + "main.skips:skips-value",
		}, []string{"main.skips main.go:skips-range, range C.next at most once a round C.value at most once a round"}},
		"one function": {[]string{cross("next", "Next") + "main.single:single-next"}, []string{
			"main.single main.go:single-range, range C.next once a round",
		}},
		"most in one function": {append(slices.Repeat([]string{cross("next", "Next") + "main.skips:skips-next"}, 20),
			cross("value", "Value")+"main.skips:skips-value"), []string{
			"main.skips main.go:skips-range, range C.next at most once a round C.value at most once a round",
		}},
		"no loop": {[]string{
			cross("next", "Next") + "main.straight:straight-next",
			cross("value", "Value") + "main.straight:straight-value",
		}, []string{"main.straight C.next once a round C.value once a round"}},
		"arguments that cgo checks": {[]string{
			"runtime.exitsyscall" + exit + " example.com/prog/bind._Cfunc_key example.com/prog/bind.Sum.func1:sum-key example.com/prog/bind.Sum:sum-key testing.(*B).runN",
		}, []string{"bind.Sum bind.go:sum-loop, range C.key once a round"}},
		"a benchmark of the binding": {[]string{
			cross("key", "Key") + "example.com/prog/bind.Sum:sum-key testing.(*B).runN",
		}, []string{"bind.Sum bind.go:sum-loop, range C.key once a round"}},
	} {
		r := New(loopProfile(t, dir, test.stacks), "test", Calibration{CallNs: 40, Go: "go1.26", From: "here"}, Stored, true, 0)
		got := map[string]bool{}
		for _, a := range r.Advice {
			if a.Loop == nil {
				continue
			}
			text := shortName(a.Loop.Function)
			if a.Loop.Kind == kindRecursion {
				text += ", which calls itself"
			} else if a.Loop.Line > 0 {
				text += fmt.Sprintf(" %s:%d, %s", filepath.Base(a.Loop.File), a.Loop.Line, a.Loop.Kind)
			}
			for _, c := range a.Calls {
				text += " " + c.Callee + " " + c.Count
				if !strings.Contains(a.Sketch, strings.TrimPrefix(c.Callee, "C.")+"(") {
					t.Errorf("%s: the sketch has no %s:\n%s", name, c.Callee, a.Sketch)
				}
			}
			// What a recursion finds has to come back to it, at a price that is not known.
			open := strings.HasSuffix(name, "recursion")
			if rounds := name == "most in one function" || len(a.Calls) == 1; strings.Contains(a.Sketch, "int n") != rounds || rounds && a.Expected > a.Now/batch+1e-9 {
				t.Errorf("%s: %+v", name, a)
			}
			if open != a.Open || open != (a.Basis == "") || a.Expected <= 0 || a.Expected >= a.Now != open || !open && !strings.Contains(a.Basis, "at 40.0 ns each (go1.26, here)") {
				t.Errorf("%s: %+v", name, a)
			}
			got[text] = true
		}
		for _, want := range test.want {
			for word := range strings.FieldsSeq(want) {
				if file, line, found := strings.Cut(strings.TrimSuffix(word, ","), ":"); found {
					number := int64(strings.Count(loopBinding[:strings.Index(loopBinding, "for range n")], "\n") + 1)
					if line != "sum-loop" {
						_, number = lineNamed(t, line)
					}
					want = strings.Replace(want, file+":"+line, fmt.Sprintf("%s:%d", file, number), 1)
				}
			}
			if !got[want] {
				t.Errorf("%s: no loop %q in %q", name, want, slices.Sorted(maps.Keys(got)))
			}
		}
		if len(got) != len(test.want) {
			t.Errorf("%s: the loops %q, want %q", name, slices.Sorted(maps.Keys(got)), test.want)
		}
	}
}

// TestLoopSketch has a loop within a loop, whose calls stand in its sketch.
func TestLoopSketch(t *testing.T) {
	dir := aFolder(t, map[string]string{"bind/bind.go": loopBinding, "main.go": loopProgram})
	r := New(loopProfile(t, dir, []string{
		cross("first", "First") + "main.scan:scan-for main.main:main-scan",
		cross("next", "Next") + "main.scan:scan-for main.main:main-scan",
		cross("value", "Value") + "main.scan:scan-value main.main:main-scan",
	}), "test", Calibration{}, Stored, true, 0)
	_, outer := lineNamed(t, "outer")
	_, inner := lineNamed(t, "scan-for")
	want := fmt.Sprintf(`static int main_rounds(…, int n) {
	for (int i = 0; i < n; i++) {
		first(…); // main.scan, once a round
		for (…) { // main.scan main.go:%d-%d, for
			next(…); // bind.Next, once a round
			if (…) value(…); // bind.Value, at most once a round
		}
	}
	return …;
}
`, inner, inner+5)
	for _, a := range r.Advice {
		if a.Loop != nil && a.Loop.Line == int(outer) {
			if a.Sketch != want {
				t.Errorf("the sketch is\n%s, want\n%s", a.Sketch, want)
			}
			return
		}
	}
	t.Errorf("no advice about the outer loop: %+v", r.Advice)
}

// TestLoopCode counts what goes with the calls of a loop: cgo's checks of their arguments, and the Go code of
// the binding where that is there for the calls. Each stack has 10 samples.
func TestLoopCode(t *testing.T) {
	dir := aFolder(t, map[string]string{"bind/bind.go": loopBinding, "main.go": loopProgram})
	const main = " main.main:main-scan"
	calls := []string{
		cross("next", "Next") + "main.scan:scan-for" + main,
		cross("key", "Key") + "main.scan:scan-key" + main,
	}
	check := "runtime.cgoCheckPointer example.com/prog/bind.Key:key main.scan:scan-key" + main
	code := "example.com/prog/bind.Key:key main.scan:scan-key" + main
	for name, test := range map[string]struct {
		more          []string
		now, expected float64 // samples
	}{
		"calls":               {nil, 20, 10},
		"checks":              {[]string{check, check}, 40, 10},
		"Go code":             {[]string{code}, 30, 10},
		"what it allocates":   {[]string{"runtime.mallocgc runtime.newobject " + code}, 30, 10},
		"its collection":      {[]string{"runtime.mallocgc runtime.newobject " + code, "runtime.scanobject runtime.gcDrain runtime.gcBgMarkWorker"}, 40, 10},
		"other work":          {slices.Repeat([]string{code}, 4), 20, 10},
		"code of the loop":    {[]string{"main.scan:scan-key" + main}, 20, 10},
		"beside the loop":     {[]string{"example.com/prog/bind.Key:key main.straight:straight-value" + main}, 20, 10},
		"by another package":  {[]string{"example.com/prog/bind.Key:key example.com/other.Rows:scan-key main.scan:scan-key" + main}, 20, 10},
		"a text for Go":       {[]string{"runtime.memmove example.com/prog/bind._Cfunc_GoString " + code}, 20, 10},
		"another one's calls": {[]string{"example.com/prog/bind.Value:value main.scan:scan-value" + main}, 20, 10},
	} {
		stacks := slices.Concat(calls, test.more)
		found := false
		for _, a := range New(loopProfile(t, dir, stacks), "test", Calibration{}, Stored, true, 0).Advice {
			if a.Loop == nil || a.Loop.Function != "main.scan" {
				continue
			}
			found = true
			samples := float64(10 * len(stacks))
			if math.Abs(a.Now*samples-test.now) > 0.01 || math.Abs(a.Expected*samples-test.expected) > 0.01 {
				t.Errorf("%s: %.2f samples, then %.2f, want %.0f, then %.0f", name, a.Now*samples, a.Expected*samples, test.now, test.expected)
			}
		}
		if !found {
			t.Errorf("%s: no advice about the loop", name)
		}
	}
}

// TestLoopsWithoutSource has the functions only, and source that is not what was built.
func TestLoopsWithoutSource(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"none":    {},
		"another": {"bind/bind.go": "package bind\n", "main.go": "package main\n" + strings.Repeat("\n", 100)},
		"no Go":   {"bind/bind.go": "}{", "main.go": "}{"},
	} {
		r := New(loopProfile(t, aFolder(t, files), []string{
			cross("valid", "Valid") + "main.scan:scan-for main.main:main-scan",
			cross("key", "Key") + "main.scan:scan-key main.main:main-scan",
		}), "test", Calibration{}, Stored, true, 0)
		if len(r.Advice) != 1 || r.Advice[0].Loop == nil || *r.Advice[0].Loop != (Loop{Kind: kindFunction, Function: "main.scan", File: r.Advice[0].Loop.File}) {
			t.Fatalf("%s: %+v", name, r.Advice)
		}
		for _, c := range r.Advice[0].Calls {
			if c.Count != unknownRounds {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

// TestLoopOfProgram builds and runs the program. The wrappers of the binding are inlined there.
func TestLoopOfProgram(t *testing.T) {
	if !hasCgo(t) {
		return // the binding needs cgo
	}
	program := built(t, aFolder(t, map[string]string{"go.mod": "module example.com/prog\n\ngo 1.24\n", "bind/bind.go": loopBinding, "main.go": loopProgram}))
	p, run := profileOf(t, program)
	r := New(p, "test", Calibration{CallNs: 40}, Stored, program.Exact, run.Calls)
	_, line := lineNamed(t, "scan-for")
	for _, a := range r.Advice {
		if a.Loop != nil && a.Loop.Function == "main.scan" && a.Loop.Kind == kindFor && a.Loop.Line == int(line) && len(a.Calls) > 1 {
			return
		}
	}
	t.Errorf("no advice about the loop in main.scan: %+v", r.Advice)
}

// TestFewerThanCounted has profiles in which calls take any part of the time, and any number of them.
func TestFewerThanCounted(t *testing.T) {
	said := 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		stacks := map[string]int64{}
		for i := range 4 {
			site := fmt.Sprintf("runtime.cgocall:%%d main._Cfunc_f%d:1 main.loop%d:%d", i, i/2, 1+i)
			stacks["runtime.casgstatus:1 runtime.reentersyscall:2 runtime.entersyscall:2 "+fmt.Sprintf(site, 3)] = 1 + random.Int64N(100)
			stacks["runtime.exitsyscall:2 "+fmt.Sprintf(site, 4)] = random.Int64N(100)
			stacks["c_f "+fmt.Sprintf(site, 3)] = random.Int64N(1 << random.Int64N(10))
			stacks["runtime.cgoCheckPointer:1 "+fmt.Sprintf("main.loop%d:%d", i/2, 1+i)] = random.Int64N(50)
		}
		counted := 1 + random.Uint64N(1<<random.Uint64N(40))
		r := New(aProfile(stacks), "test", Calibration{CallNs: 40}, Stored, random.Int64N(2) == 0, counted)
		for _, a := range r.Advice {
			if a.Fewer > float64(counted) {
				t.Errorf("seed %d: %.0f of %d calls fewer", seed, a.Fewer, counted)
			}
			if a.Fewer > 0 {
				said++
			}
			if a.Loop != nil && strings.Contains(a.Basis, "checks") != strings.Contains(a.Text, "uintptr_t for addresses") {
				t.Errorf("seed %d: %+v does not say how to do without checks", seed, a)
			}
		}
	}
	if said < 50 {
		t.Errorf("%d pieces of advice say how many calls fewer", said)
	}
}
