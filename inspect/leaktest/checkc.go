package leaktest

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/watch/census"
)

// CheckC fails the test if what C holds grows with each call of body: blocks of malloc and its like, and mappings that C
// code makes by mmap. It names the stacks, first the functions of C and then those of Go. The program must import
// package cmem, which counts them:
//
//	import _ "github.com/cheapgo/cheap/cmem"
//
//	func TestDecode(t *testing.T) {
//		leaktest.CheckC(t, func() { decode(image) })
//	}
//
// It calls body 100 times to warm up, and 100 times more. That is all if nothing more is in use at the end than at
// the least in between. Else it goes on, 3,200 calls in all, collects garbage from time to time, and fails the test if
// something grows until the end, at about the same rate: one block of 16 bytes in 100 calls is enough. What
// comes and goes is none, nor is a cache that fills in fewer calls. [Runs] sets the 100, and [IgnoreC] names
// what may grow.
//
// What other goroutines and threads do meanwhile counts as well, so tests in parallel must not call CheckC. A thread
// of C that is older than the call, and allocates less than 256 KiB meanwhile, has its blocks counted, but not its
// stacks.
//
// Where package cmem does nothing, as with the address sanitizer, CheckC calls body once, and logs why.
func CheckC(t testing.TB, body func(), opts ...Option) {
	t.Helper()
	o := optionsOf(opts)
	c, ok := census.C().(census.CTracker)
	if !ok {
		t.Fatalf(`leaktest: CheckC: nothing counts the memory of C; import _ "github.com/cheapgo/cheap/cmem" in the test`)
		return
	}
	stop := c.Track() // turns on what CHEAP_CMEM=ready has left off
	defer stop()
	heap := census.C()
	if why := heap.Off(); why != "" {
		t.Logf("leaktest: CheckC: the memory of C is not counted: %s", why)
		body()
		return
	}
	enter(t)
	defer leave(t.Name())

	read := func(f func(number int, blocks, bytes float64)) {
		n := heap.Read()
		f(allStacks, float64(n.Mallocs-n.Frees), 0)
		c.EachStack(f)
	}
	g, calls := newGrowth(cmp.Or(o.runs, defaultRuns)), 0
	for ; g.goesOn(); g.end() {
		for range g.length() {
			body() // in one place: what a stack has includes who has called it
			if calls++; t.Failed() {
				return
			}
			if g.now != warmUp {
				read(g.add)
			}
		}
		if g.now != 0 {
			Collect(t)
		}
		if g.now > 0 {
			read(g.add)
		}
		if t.Failed() {
			return // releases take too long
		}
	}
	for _, l := range describe(c, g.leaks(), calls, o) {
		t.Errorf("leaktest: %s", l)
	}
}

const defaultRuns = 100

// Runs sets how often [CheckC] calls its function to warm up, and before it looks for the first time: 100 if n is 0.
func Runs(n int) Option {
	if n < 0 {
		panic("leaktest: Runs: a negative number of calls")
	}
	return func(o *options) { o.runs = n }
}

// IgnoreC has [CheckC] ignore what is allocated by functions or libraries whose names match a pattern of [path.Match]:
// IgnoreC("libfontconfig.so*"). A function anywhere on the stack counts.
func IgnoreC(pattern string) Option {
	return func(o *options) { o.c = add(o.c, "IgnoreC", pattern) }
}

// ignored reports whether the library of a stack, or a function of it, is to be ignored.
func (o *options) ignored(s census.CSuspect) bool {
	if matches(o.c, s.Library) {
		return true
	}
	for line := range strings.Lines(s.Stack) {
		if !strings.HasPrefix(line, "\t") && matches(o.c, strings.TrimSuffix(line, "\n")) {
			return true
		}
	}
	return false
}

// mostLeaks is how many stacks CheckC names.
const mostLeaks = 5

// describe says what has grown.
func describe(c census.CTracker, all []grown, calls int, o *options) (lines []string) {
	slices.SortFunc(all, func(x, y grown) int {
		return cmp.Or(cmp.Compare(y.bytes, x.bytes), cmp.Compare(y.blocks, x.blocks), cmp.Compare(x.number, y.number))
	})
	var numbers []int
	for _, g := range all {
		numbers = append(numbers, g.number)
	}
	more, nameless := 0, false
	for i, name := range c.Named(numbers) {
		g := all[i]
		switch {
		case g.number == allStacks:
			if len(o.c) == 0 { // else they may be of what is ignored
				lines = append(lines, fmt.Sprintf("C holds %s more after %d calls; the stacks are many, or of threads of C that are older than the check",
					plural(g.blocks, "block"), calls))
			}
		case o.ignored(name):
		case len(lines) == mostLeaks:
			more++
		default:
			lines = append(lines, fmt.Sprintf("C holds %s after %d calls; made in %s by\n%s", g, calls, cmp.Or(name.Library, "an unknown library"), ofBody(name.Stack)))
			nameless = nameless || strings.Contains(name.Stack, path.Base(os.Args[0])+"+0x")
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%s more grow", plural(int64(more), "stack")))
	}
	if nameless {
		lines = append(lines, "go test leaves out the names of the functions of C in the test itself; go test -ldflags=-s=false has them")
	}
	return lines
}

func (g grown) String() string {
	switch {
	case g.number < 0:
		return bytes(g.bytes) + " of mappings more"
	case g.blocks <= 0:
		return bytes(g.bytes) + " more in as many blocks"
	}
	return plural(g.blocks, "block") + " more, of " + bytes(g.bytes) + ","
}

// ofBody returns a stack up to the function that CheckC has called.
func ofBody(stack string) string {
	name := runtime.FuncForPC(reflect.ValueOf(CheckC).Pointer()).Name()
	stack, _, _ = strings.Cut(stack, name+"\n")
	return strings.TrimSuffix(stack, "\n")
}
