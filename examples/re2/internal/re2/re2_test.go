//go:build cgo && re2

package re2_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cheapgo/cheap/examples/re2/internal/re2"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own"
)

// settled waits until all objects of C++ are freed, or fails the test.
func settled(t *testing.T) {
	t.Helper()
	end, limited := t.Deadline()
	for re2.Alive() > 0 {
		if limited && time.Until(end) < 5*time.Second {
			t.Fatalf("%d objects are not freed", re2.Alive())
		}
		runtime.GC()
		testcall.Must(t, own.Flush(t.Context()))
	}
}

// expressions are for both libraries, whose syntax is the same.
var expressions = []string{
	``, `a`, `^`, `$`, `a*`, `(a)(b)?`, `(a*)(b*)`, `(?i)ab+`, `[^b]`, `\bb`, `(ab|a)(c|bc)`, `(?:a|(b))+`, `\pL+`, `é`, `a.c`, `x{2,3}`, `(?s).+`,
}

// texts returns random texts of few letters, so that expressions match often.
func texts() (list []string) {
	random := rand.New(rand.NewPCG(1, 2))
	list = []string{""}
	for range 200 {
		var text strings.Builder
		for range random.IntN(20) {
			text.WriteRune([]rune("aabbcx é\n")[random.IntN(9)])
		}
		list = append(list, text.String())
	}
	return list
}

// TestFind compares each match with that of package regexp.
func TestFind(t *testing.T) {
	matches := 0
	for _, e := range expressions {
		want := regexp.MustCompile(e)
		re, err := re2.Compile(e)
		testcall.Must(t, err)
		if re.String() != e || re.NumSubexp() != want.NumSubexp() {
			t.Errorf("%q has %d groups, want %q with %d", re, re.NumSubexp(), e, want.NumSubexp())
		}
		for _, text := range texts() {
			got, err := re.Find([]byte(text))
			if want := want.FindSubmatchIndex([]byte(text)); err != nil || !slices.Equal(got, want) || (got == nil) != (want == nil) {
				t.Fatalf("%q in %q: %v, want %v; %v", e, text, got, want, err)
			}
			if got != nil {
				matches++
			}
		}
		if got, err := re.Find(nil); err != nil || !slices.Equal(got, want.FindSubmatchIndex(nil)) {
			t.Errorf("%q in nothing: %v, want %v; %v", e, got, want.FindSubmatchIndex(nil), err)
		}
		testcall.Want(t, re.Close())
	}
	if matches < 1000 {
		t.Errorf("%d matches, want more", matches)
	}
	if n := re2.Alive(); n != 0 {
		t.Errorf("%d objects are alive after Close", n)
	}
}

// TestSet compares with package regexp which expressions match.
func TestSet(t *testing.T) {
	set, err := re2.NewSet(expressions...)
	testcall.Must(t, err)
	defer set.Close()
	for _, text := range texts() {
		got, err := set.Match([]byte(text))
		slices.Sort(got)
		var want []int
		for i, e := range expressions {
			if regexp.MustCompile(e).MatchString(text) {
				want = append(want, i)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v; %v", text, got, want, err)
		}
	}
	none, err := re2.NewSet()
	testcall.Must(t, err)
	defer none.Close()
	if got, err := none.Match([]byte("a")); got != nil || err != nil {
		t.Errorf("a set of nothing has matches: %v, %v", got, err)
	}
}

// TestErrors makes nothing, and uses what is closed.
func TestErrors(t *testing.T) {
	for _, e := range []string{"(", "[", "a**", "\\", "(?P<", "a\xff"} {
		if _, err := re2.Compile(e); err == nil || !strings.HasPrefix(err.Error(), "re2: ") {
			t.Errorf("%q compiles: %v", e, err)
		}
		if _, err := re2.NewSet("a", e, "b"); err == nil || !strings.HasPrefix(err.Error(), "re2: ") {
			t.Errorf("a set with %q compiles: %v", e, err)
		}
	}
	if _, err := re2.NewSet("a\x00b"); err == nil {
		t.Error("a string that ends before its end is taken")
	}
	if n := re2.Alive(); n != 0 {
		t.Errorf("%d objects are alive after errors", n)
	}
	re, err := re2.Compile("a\x00b") // its length is given
	testcall.Must(t, err)
	if at, err := re.Find([]byte("ca\x00b")); err != nil || !slices.Equal(at, []int{1, 4}) {
		t.Errorf("%v, %v", at, err)
	}
	for range 2 {
		testcall.Want(t, re.Close())
	}
	if at, err := re.Find([]byte("a")); !errors.Is(err, own.ErrClosed) || at != nil {
		t.Errorf("after Close: %v, %v", at, err)
	}
	set, err := re2.NewSet("a")
	testcall.Must(t, err)
	set.Close()
	if matches, err := set.Match([]byte("a")); !errors.Is(err, own.ErrClosed) || matches != nil {
		t.Errorf("after Close: %v, %v", matches, err)
	}
}

// TestForgotten makes objects from many goroutines, which share some, close some, and
// forget the others.
func TestForgotten(t *testing.T) {
	shared, err := re2.Compile(`(\w+)@(\w+)`)
	testcall.Must(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 100 {
				if at, err := shared.Find([]byte("to me@example")); err != nil || !slices.Equal(at, []int{3, 13, 3, 5, 6, 13}) {
					t.Error(at, err)
				}
				re, err := re2.Compile(`b+`)
				if err != nil {
					t.Error(err)
					return
				}
				set, err := re2.NewSet(`a`, `b`)
				if err != nil {
					t.Error(err)
					return
				}
				if at, err := re.Find([]byte("abbc")); err != nil || !slices.Equal(at, []int{1, 3}) {
					t.Error(at, err)
				}
				if i%4 == 0 {
					re.Close()
					set.Close()
				}
			}
		})
	}
	all.Wait()
	if n := re2.Alive(); n == 0 {
		t.Error("nothing is alive")
	}
	runtime.KeepAlive(shared)
	shared = nil
	settled(t)
}
