package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/inspect/internal/suspects"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/watch/leaks"
	"github.com/cheapgo/cheap/own"
)

var resource byte

// ownOne makes an owner.
func ownOne(t testing.TB, p *own.Pool, size int) *own.Handle[unsafe.Pointer] {
	o := new(own.Handle[unsafe.Pointer])
	testcall.Must(t, o.Own(p, unsafe.Pointer(&resource), size))
	return o
}

func newPool(t testing.TB, name string, l own.LeakLevel) *own.Pool {
	p := own.NewPool(own.Options{Name: name, Release: func(any, []uintptr) error { return nil }})
	own.SetLeakLevel(name, l)
	t.Cleanup(func() { p.CloseWait(context.Background()) })
	return p
}

// suspectsOf returns those of a pool.
func suspectsOf(pool string) []pagejson.Suspect {
	return slices.DeleteFunc(suspects.Read(), func(s pagejson.Suspect) bool { return s.Pool != pool })
}

// TestSuspectsAgainstTheTruth plants 1,000 stacks that make owners, each of the largest with
// 1.25 times the bytes of the next. Most of what they make is closed or dropped. The level
// is sampled. The largest are in their places, and the sums are right.
func TestSuspectsAgainstTheTruth(t *testing.T) {
	const bits, sites = 10, 1000
	const few = 20 // owners that stay, of each stack, in each round
	// many of each of the largest, which have 750 samples: the order of two of them is wrong in one run
	// of a million.
	top, rounds, many := 8, 24, 4000
	switch {
	case race.Build:
		rounds, many = 4, 400
	case *long:
		top, rounds = 20, 40
	}
	p := own.NewPool(own.Options{Name: "planted.Pool", Pinned: 1 << 30, Release: func(any, []uintptr) error { return nil }})
	defer p.CloseWait(context.Background())
	own.SetLeakLevel("planted.Pool", own.LeaksSampled)
	held := make([]own.Handle[unsafe.Pointer], 0, rounds*(top*many+(sites-top)*few))
	var sizes [sites]int
	for n := range sizes {
		if sizes[n] = 16; n < top {
			sizes[n] = int(8_000 / math.Pow(1.25, float64(n)))
		}
	}
	for range rounds {
		for n := range sites {
			each := few
			if n < top {
				each = many
			}
			testcall.Site(1<<bits|n, func() {
				for i := range 2 * each {
					var closed own.Handle[unsafe.Pointer] // as many come and go as stay
					o := &closed
					if i%2 == 0 {
						held = held[:len(held)+1]
						o = &held[len(held)-1]
					}
					testcall.Must(t, o.Own(p, unsafe.Pointer(&resource), sizes[n]))
					closed.Close()
				}
			})
		}
	}
	all := suspectsOf("planted.Pool")
	var live, total, named int64
	for i, s := range all {
		live += s.Live
		total += s.Bytes
		if s.Stack != "" {
			named += s.Bytes
		}
		if i >= top || race.Build { // too few samples
			continue
		}
		if n := testcall.SiteOf(strings.Split(s.Stack, "\n")) - 1<<bits; n != i {
			t.Errorf("in place %d is stack %d with %d bytes:\n%s", i, n, s.Bytes, s.Stack)
		}
		if want := float64(rounds * many * sizes[i]); math.Abs(float64(s.Bytes)/want-1) > 0.2 {
			t.Errorf("stack %d has %d bytes, want about %.0f", i, s.Bytes, want)
		}
	}
	var want int64
	for n := range sites {
		if n < top {
			want += int64(rounds * many * sizes[n])
		} else {
			want += int64(rounds * few * sizes[n])
		}
	}
	if live != int64(len(held)) || total != want || float64(named) < 0.95*float64(want) {
		t.Errorf("%d open, %d bytes, of which the stacks are known of %d; want %d, %d", live, total, named, len(held), want)
	}
	if len(all) < sites/2 {
		t.Errorf("%d suspects of %d stacks", len(all), sites)
	}
	runtime.KeepAlive(held)
}

//go:noinline
func openConn(t testing.TB, p *own.Pool) *own.Handle[unsafe.Pointer] { return ownOne(t, p, 1000) }

//go:noinline
func openFile(t testing.TB, p *own.Pool) *own.Handle[unsafe.Pointer] { return ownOne(t, p, 10) }

// forgetSome has one function that forgets some of what it makes, one that closes all,
// and one that keeps all. It returns what is kept.
func forgetSome(t testing.TB, p *own.Pool) (kept []*own.Handle[unsafe.Pointer]) {
	testcall.Aside(func() {
		for i := range 1000 {
			if o := openConn(t, p); i%10 != 0 {
				o.Close()
			}
			openFile(t, p).Close()
		}
	})
	for i := range 5 {
		o := openFile(t, p)
		o.SetLabel(fmt.Sprint("file ", i/3))
		kept = append(kept, o)
	}
	return kept
}

// TestMissingClose looks at a pool whose owners are mostly closed, and at one whose owners
// are left to the collector.
func TestMissingClose(t *testing.T) {
	p, q := newPool(t, "closed.Pool", own.LeaksAll), newPool(t, "left.Pool", own.LeaksAll)
	kept := forgetSome(t, p)
	testcall.Aside(func() {
		for i := range 100 {
			if o := openConn(t, q); i == 0 {
				o.Close()
			}
		}
	})
	testcall.Must(t, Collect(context.Background()))
	missing := 0
	for _, s := range suspectsOf("closed.Pool") {
		switch {
		case strings.Contains(s.Stack, "inspect.openConn"):
			if missing++; !s.MissingClose || s.Made != 1000 || s.Collected != 100 || s.Closed != 900 || s.Live != 0 {
				t.Errorf("%+v", s)
			}
		case s.MissingClose || s.Collected != 0:
			t.Errorf("%+v", s)
		}
	}
	if missing != 1 {
		t.Errorf("%d suspects have no Close", missing)
	}
	if s := suspectsOf("left.Pool"); len(s) != 1 || s[0].MissingClose || s[0].Collected != 99 || s[0].Closed != 1 {
		t.Errorf("%+v", s)
	}
	runtime.KeepAlive(kept)
}

// TestWriteLeaks reads the profile, and has go tool pprof read it.
func TestWriteLeaks(t *testing.T) {
	p := newPool(t, "profiled.Pool", own.LeaksAll)
	before := ownOne(t, newPool(t, "unknown.Pool", own.LeaksOff), 77)
	kept := forgetSome(t, p)
	var file bytes.Buffer
	testcall.Must(t, WriteLeaks(&file))
	if testenv.NoGo() {
		mustBeLeaks(t, &file)
		return
	}
	name := filepath.Join(t.TempDir(), "leaks.pb.gz")
	testcall.Must(t, os.WriteFile(name, file.Bytes(), 0o666))
	out, err := exec.Command("go", "tool", "pprof", "-top", "-sample_index=collected_objects", "-tagfocus=pool=profiled.Pool", name).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "inspect.openConn") || strings.Contains(string(out), "inspect.openFile") {
		t.Errorf("go tool pprof: %v\n%s", err, out)
	}
	mustBeLeaks(t, &file)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(before)
}

// mustBeLeaks looks at a profile of what forgetSome has left in profiled.Pool.
func mustBeLeaks(t *testing.T, file *bytes.Buffer) {
	t.Helper()
	f, err := profile.Parse(file)
	testcall.Must(t, err)
	testcall.Must(t, f.CheckValid())
	if f.DefaultSampleType != "live_space" {
		t.Errorf("the default is %s", f.DefaultSampleType)
	}
	got := map[string][3]int64{}
	for _, s := range f.Sample {
		pool := s.Label["pool"][0]
		if pool != "profiled.Pool" && pool != "unknown.Pool" {
			continue
		}
		made := s.Location[0].Line[0].Function.Name
		for _, l := range s.Location {
			if name := l.Line[0].Function.Name; strings.Contains(name, "inspect.open") {
				made = name[strings.LastIndexByte(name, '.')+1:]
			}
		}
		key := strings.Join(append([]string{pool, made}, s.Label["label"]...), " ")
		v := got[key]
		for i := range v {
			v[i] += s.Value[i]
		}
		got[key] = v
	}
	want := map[string][3]int64{
		"profiled.Pool openConn":        {0, 0, 100},
		"profiled.Pool openFile file 0": {3, 30, 0},
		"profiled.Pool openFile file 1": {2, 20, 0},
		"unknown.Pool (not recorded)":   {1, 77, 0},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the profile has\n%v, want\n%v", got, want)
	}
}

// TestCheapleak reads the profile as net/http/pprof does.
func TestCheapleak(t *testing.T) {
	own.SetLeakLevel("quiet.*", own.LeaksOff) // the level of no pool but that of this test
	defer leaks.SetBase(leaks.Off)
	EnableLeaks()
	EnableLeaks()
	if l := levelOf(t, "quiet.Pool"); l != own.LeaksOff {
		t.Errorf("EnableLeaks has set %v where a level was set", l)
	}
	if l := levelOf(t, "other.Pool"); l != own.LeaksSampled {
		t.Errorf("the level is %v", l)
	}
	p := newPool(t, "profiled.Pool", own.LeaksAll)
	before := ownOne(t, newPool(t, "unknown.Pool", own.LeaksOff), 77)
	kept := forgetSome(t, p)
	f := pprof.Lookup("cheapleak")
	if f == nil {
		t.Fatal("there is no profile cheapleak")
	}
	if n := f.Count(); n < 6 || n > 106+500 {
		t.Errorf("cheapleak counts %d", n)
	}
	var file, text bytes.Buffer
	testcall.Must(t, f.WriteTo(&file, 0))
	mustBeLeaks(t, &file)
	if err := f.WriteTo(&text, 1); err != nil || !strings.Contains(text.String(), "a Close is missing\nmade by\ngithub.com/cheapgo/cheap/inspect.ownOne\n") {
		t.Errorf("%v\n%s", err, &text)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(before)
}

// levelOf returns the level of a new pool with a name.
func levelOf(t *testing.T, name string) own.LeakLevel {
	p := own.NewPool(own.Options{Name: name, Release: func(any, []uintptr) error { return nil }})
	defer runtime.KeepAlive(p)
	for _, i := range leaks.ReadPools() {
		if i.Name == name {
			return own.LeakLevel(i.Level)
		}
	}
	t.Fatalf("there is no pool %s", name)
	return 0
}

// TestSetField has a field of another type, and none.
func TestSetField(t *testing.T) {
	var x struct{ count func() string }
	v := reflect.ValueOf(&x).Elem()
	count := func() int { return 1 }
	if setField(v.FieldByName("count"), count) || x.count != nil {
		t.Error("a field of another type was set")
	}
	if setField(v.FieldByName("write"), count) {
		t.Error("a field that does not exist was set")
	}
}

// TestServe asks for suspects in both forms, and for the profile.
func TestServe(t *testing.T) {
	p := newPool(t, "profiled.Pool", own.LeaksAll)
	before := ownOne(t, newPool(t, "unknown.Pool", own.LeaksOff), 77)
	kept := forgetSome(t, p)
	get := func(url, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", url, nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		if ServeSuspects(w, r); w.Code != 200 || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %v", url, w.Code, w.Header())
		}
		return w
	}
	text := get("/debug/cheap/suspects?gc=1", "text/html")
	for _, want := range []string{
		"profiled.Pool: 3 open, 30 bytes, labeled \"file 0\"", // and, after a second, how old they are
		"profiled.Pool: 0 open, 0 bytes\n1,000 made since recording began, 900 closed, 100 released by the collector: a Close is missing\nmade by\n",
		"unknown.Pool: 1 open, 77 bytes",
	} {
		if !strings.Contains(text.Body.String(), want) {
			t.Errorf("the text has no %q:\n%s", want, text.Body)
		}
	}
	if c := text.Header().Get("Content-Type"); c != "text/plain; charset=utf-8" {
		t.Error(c)
	}
	for _, w := range []*httptest.ResponseRecorder{get("/debug/cheap/suspects?format=json", "*/*"), get("/debug/cheap/suspects", "application/json")} {
		var got []pagejson.Suspect
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%v\n%s", err, w.Body)
		}
		want := suspects.Read()
		for i := range want {
			want[i].PCs = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	w := httptest.NewRecorder()
	ServeLeaks(w, httptest.NewRequest("GET", "/debug/cheap/leaks", nil))
	if w.Header().Get("Content-Type") != "application/octet-stream" {
		t.Error(w.Header())
	}
	mustBeLeaks(t, w.Body)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(before)
}

func TestDigits(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -123: "-123", -1234: "-1,234"} {
		if got := digits(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}

// TestLeaksAdvice looks for the sentence that names the pools whose level is off.
func TestLeaksAdvice(t *testing.T) {
	leaks.SetBase(leaks.All)
	defer leaks.SetBase(leaks.Off)
	for _, p := range leaks.ReadPools() { // those of other tests
		if p.Level == leaks.Off {
			own.SetLeakLevel(p.Name, own.LeaksAll)
			defer own.SetLeakLevel(p.Name, own.LeaksOff)
		}
	}
	if text := leaksAdvice(); text != "" {
		t.Errorf("all pools record stacks: %q", text)
	}
	newPool(t, "advice.Pool", own.LeaksOff)
	for range 2 {
		newPool(t, "advice.Twin", own.LeaksOff)
	}
	var figures pagejson.SuspectFigures
	read := func() (text string) {
		h := Handler(Options{Title: "advised"})
		testcall.Must(t, json.Unmarshal(ask(h, "GET", "suspects.json", nil).Body.Bytes(), &figures))
		return ask(h, "GET", "suspects.txt", nil).Body.String()
	}
	text := read()
	if want := "No stacks are recorded of the owners of advice.Pool, advice.Twin. inspect.EnableLeaks()"; !strings.HasPrefix(figures.Advice, want) || !strings.HasSuffix(text, "\n"+figures.Advice+"\n") {
		t.Errorf("the advice is %q, want %q, in the text, too:\n%s", figures.Advice, want, text)
	}
	if figures.Program != "advised" || figures.Time.IsZero() || figures.Suspects == nil {
		t.Errorf("%+v", figures)
	}
	for i := range 5 {
		newPool(t, fmt.Sprint("advice.", i), own.LeaksOff)
	}
	if text := leaksAdvice(); !strings.Contains(text, "advice.2 and 2 more. ") {
		t.Errorf("of seven names: %q", text)
	}
	own.SetLeakLevel("advice.Pool", own.LeaksSampled)
	if text := leaksAdvice(); strings.Contains(text, "advice.Pool") {
		t.Errorf("the pool records some stacks: %q", text)
	}
}
