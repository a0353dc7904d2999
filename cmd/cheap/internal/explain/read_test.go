package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/cmd/cheap/internal/explain/calibrator"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// written returns what a function writes.
func written(t *testing.T, write func(b *bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	testcall.Must(t, write(&b))
	return b.Bytes()
}

// TestReadOthers gives what is no CPU profile.
func TestReadOthers(t *testing.T) {
	lookup := func(name string, debug int) []byte {
		return written(t, func(b *bytes.Buffer) error { return pprof.Lookup(name).WriteTo(b, debug) })
	}
	runtime.SetMutexProfileFraction(1)
	defer runtime.SetMutexProfileFraction(0)
	program, err := os.ReadFile(os.Args[0])
	testcall.Must(t, err)
	for want, data := range map[string][]byte{
		"this is a heap profile":              lookup("heap", 0),
		"this is a profile of allocations":    lookup("allocs", 0),
		"this is a mutex or block profile":    lookup("mutex", 0),
		"this is a goroutine profile":         lookup("goroutine", 0),
		"this is a profile of threads":        lookup("threadcreate", 0),
		"this is a goroutine profile in text": lookup("goroutine", 1),
		"this is a heap profile in text":      lookup("heap", 1),
		"this is a mutex profile in text":     lookup("mutex", 1),
		"this is a block profile in text":     lookup("block", 1),
		"this is an execution trace": written(t, func(b *bytes.Buffer) error {
			defer trace.Stop()
			return trace.Start(b)
		}),
		"this is empty":                []byte{},
		"this is a program":            program,
		"this is a text":               []byte("a text\n"),
		"this is no profile":           {0x1f, 0x8b, 1, 2, 3, 0xff},
		"this is a file of Linux perf": []byte("PERFILE2 and more"),
		"this is a coverage profile":   []byte("mode: set\n"),
		"this is JSON":                 []byte(" {}"),
	} {
		_, err := Read(data)
		var other *NotCPUError
		if !errors.As(err, &other) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q for %q", err, want)
		}
	}
}

// TestReadEmpty gives a CPU profile of a program that did nothing.
func TestReadEmpty(t *testing.T) {
	data := written(t, func(b *bytes.Buffer) error {
		defer pprof.StopCPUProfile()
		return pprof.StartCPUProfile(b)
	})
	pprof.StopCPUProfile()
	_, err := Read(data)
	if err != nil && !strings.Contains(err.Error(), "has no samples") && !strings.HasPrefix(err.Error(), "this is empty") {
		t.Error(err)
	}
}

// aProfile makes a CPU profile of stacks, the leaf first, with function:line, and samples of 10 ms.
func aProfile(stacks map[string]int64) *profile.Profile {
	p := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		DurationNanos: int64(time.Second),
	}
	locations := map[string]*profile.Location{}
	for stack, count := range stacks {
		s := &profile.Sample{Value: []int64{count, count * int64(10*time.Millisecond)}}
		for _, f := range strings.Fields(stack) {
			if locations[f] == nil {
				name, line := f, int64(1)
				if at := strings.LastIndex(f, ":"); at > 0 {
					name, line = f[:at], int64(f[at+1]-'0')
				}
				file := "file.go"
				if strings.HasPrefix(name, "c_") || strings.HasPrefix(name, "_cgo_0") || isMalloc(frame{function: name, isC: true}) {
					file = "libc.so"
				}
				fn := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name, Filename: file}
				p.Function = append(p.Function, fn)
				loc := &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: fn, Line: line}}}
				p.Location = append(p.Location, loc)
				locations[f] = loc
			}
			s.Location = append(s.Location, locations[f])
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

// TestReadOdd reads profiles that programs other than the runtime may write.
func TestReadOdd(t *testing.T) {
	profileOf := func(location []*profile.Location, value int64) []byte {
		return written(t, func(b *bytes.Buffer) error {
			p := &profile.Profile{
				SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
				Sample:     []*profile.Sample{{Location: location, Value: []int64{value}}},
				Location:   location,
			}
			return p.Write(b)
		})
	}
	here := []*profile.Location{{ID: 1, Address: 1}}
	var other *NotCPUError
	if _, err := Read(profileOf(here, -1)); !errors.As(err, &other) || !strings.Contains(other.Is, "difference") {
		t.Errorf("negative samples: %v", err)
	}
	if _, err := Read(profileOf(here, 0)); err == nil || !strings.Contains(err.Error(), "no samples") {
		t.Errorf("samples of nothing: %v", err)
	}
	p, err := Read(profileOf(nil, 1e9)) // a sample without a stack
	testcall.Must(t, err)
	if r := New(p, "", StoredCalibration(""), Stored, false, 0); Of(r.Mechanisms, Rest).Share != 1 || Of(r.Purposes, Rest).Share != 1 {
		t.Errorf("a sample without a stack: %+v, %+v", r.Mechanisms, r.Purposes)
	}
}

const (
	called = " main._Cfunc_work:1 main.f:5 main.main:1"
	entry  = " runtime.cgocall:3"
	exit   = " runtime.cgocall:7"
)

// TestClassify gives stacks whose mechanism and purpose are known.
func TestClassify(t *testing.T) {
	all := map[string]int64{"runtime.casgstatus runtime.reentersyscall runtime.entersyscall" + entry + called: 1}
	for _, c := range []struct {
		stack     string
		exact     bool
		mechanism mechanism
		purpose   purpose
		site      string
	}{
		{"runtime.casgstatus runtime.reentersyscall runtime.entersyscall" + entry + called, false, mechCrossing, purposeRest, "main.f C.work"},
		{"runtime.exitsyscall" + exit + called, false, mechCrossing, purposeRest, "main.f C.work"},
		{"runtime.cgocall:3" + called, false, mechC, purposeRest, "main.f C.work"},
		{"runtime.cgocall:3" + called, true, mechC, purposeRest, "main.f C.work"},
		{"runtime.cgocall:1" + called, false, mechCrossing, purposeRest, "main.f C.work"},
		{"c_malloc" + entry + called, true, mechC, purposeRest, "main.f C.work"},
		{"c_malloc" + entry + called, false, mechC, purposeRest, "main.f C.work"},
		{"runtime.asmcgocall" + entry + called, true, mechC, purposeRest, "main.f C.work"},
		{"_cgoexp_1_back" + entry + called, true, mechCallback, purposeRest, "main.f C.work"},
		{"runtime.exitsyscall" + entry + called, true, mechCallback, purposeRest, "main.f C.work"},
		{"runtime.exitsyscall runtime.cgocallbackg runtime.cgocallback" + exit + called, false, mechCallback, purposeRest, "main.f C.work"},
		{"main.back main._cgoexp_1_back runtime.cgocallbackg1 runtime.cgocallbackg" + exit + called, false, mechGo, purposeRest, "main.back"},
		{"runtime.exitsyscall syscall.Syscall os.(*File).Read main.f", false, mechSyscall, purposeRest, "os.(*File).Read"},
		{"runtime.lock2 runtime.addspecial runtime.addCleanup runtime.AddCleanup[go.shape.int] main.f", false, mechLock, purposeRegister, "main.f runtime.AddCleanup"},
		{"runtime.memmove main._Cfunc_CString main.f", false, mechGo, purposeStrings, "main.f C.CString"},
		{"runtime.exitsyscall" + exit + " main._cgo_cmalloc main._Cfunc_CString main.f", false, mechCrossing, purposeStrings, "main.f C.CString"},
		{"runtime.memclrNoHeapPointers runtime.mallocgc runtime.newobject main.f", false, mechAlloc, purposeRest, "main.f"},
		{"runtime.memmove main.f", false, mechGo, purposeRest, "main.f"},
		{"runtime.scanblock runtime.gcScanFinalizer runtime.markrootSpans runtime.markroot runtime.gcDrain", false, mechCollection, purposeRelease, ""},
		{"main.free runtime.runCleanups runtime.goexit", false, mechGo, purposeRelease, "main.free"},
		{"runtime.futex runtime.futexsleep runtime.notesleep runtime.stopm runtime.findRunnable runtime.schedule", false, mechScheduler, purposeRest, ""},
		{"runtime.something runtime.goexit", false, mechUnclassified, purposeRest, ""},
		{"c_thread", false, mechC, purposeRest, ""},
		{"runtime.memmove github.com/cheapgo/cheap/own/internal/intake.(*Intake).Put github.com/cheapgo/cheap/own.(*Handle[...]).Own main.f", false, mechGo, purposeRegister, "main.f own.Own"},
		{"github.com/cheapgo/cheap/own/internal/worker.(*worker).run", false, mechGo, purposeRelease, ""},
	} {
		p := aProfile(map[string]int64{c.stack: 1})
		k := newClassifier(aProfile(all), c.exact)
		got := k.classify(frames(p.Sample[0]))
		site := strings.TrimSpace(got.site.function + " " + got.callee)
		if got.mechanism != c.mechanism || got.purpose != c.purpose || site != c.site {
			t.Errorf("%s, exact %v: %s for %s at %q, want %s for %s at %q", c.stack, c.exact, got.mechanism, got.purpose, site, c.mechanism, c.purpose, c.site)
		}
	}
}

// TestSplit takes what calls hide away from C.
func TestSplit(t *testing.T) {
	stacks := map[string]int64{
		"runtime.reentersyscall runtime.entersyscall" + entry + called: 100,
		"runtime.exitsyscall" + exit + called:                          100,
		"runtime.cgocall:3" + called:                                   300,
		"main.other main.main":                                         500,
	}
	cal := Calibration{PerCall: Ratio{0.5, 0.4, 0.6}}
	r := New(aProfile(stacks), "test", cal, Stored, false, 0)
	checkSums(t, r)
	c, crossing := Of(r.Mechanisms, C), Of(r.Mechanisms, Crossing)
	if math.Abs(c.Share-0.2) > 1e-9 || math.Abs(crossing.Share-0.3) > 1e-9 {
		t.Errorf("C %v, crossing %v, want 0.2 and 0.3", c.Share, crossing.Share)
	}
	if c.Low > 0.18 || c.High < 0.22 {
		t.Errorf("C from %v to %v, want at least 0.18 to 0.22", c.Low, c.High)
	}
	if len(r.Sites) != 2 || r.Sites[0].Function == "" || r.Names != "1.24-1.27" {
		t.Errorf("sites %+v, versions %s", r.Sites, r.Names)
	}
}

// TestCalibrationOf has three kinds of functions, whose calls hide 1.5, 2 and 2.5 samples for each
// that is seen: the ratio is the mean, and its range has all of them.
func TestCalibrationOf(t *testing.T) {
	calls := func(hidden, back int64) []byte {
		p := aProfile(map[string]int64{
			"runtime.reentersyscall runtime.entersyscall" + entry + called:                             10_000,
			"runtime.exitsyscall" + exit + called:                                                      10_000,
			"runtime.cgocall:3" + called:                                                               hidden,
			"runtime.exitsyscall runtime.cgocallbackg runtime.cgocallback runtime.asmcgocall" + called: back,
		})
		return written(t, func(b *bytes.Buffer) error { return p.Write(b) })
	}
	r := &calibrator.Result{CallbackNs: 100, Callbacks: calls(30_000, 10_000)}
	for _, hidden := range []int64{30_000, 50_000, 40_000} {
		r.Kinds = append(r.Kinds, calibrator.Kind{CallNs: 40, Calls: calls(hidden, 0)})
	}
	cal, err := calibrationOf([]*calibrator.Result{r})
	testcall.Must(t, err)
	c := cal.PerCall
	if math.Abs(c.Value-2) > 1e-9 || c.Low > 1.5 || c.Low < 1.4 || c.High < 2.5 || c.High > 2.6 {
		t.Errorf("%+v", c)
	}
}

// TestSplitExact counts as C what was interrupted in a function of C, and as calls what was
// interrupted in the runtime's part and in what cgo has made around the function. Nothing is
// estimated, whatever the calibration says.
func TestSplitExact(t *testing.T) {
	noted := " runtime.cgocall:3" + called
	stacks := map[string]int64{
		"runtime.reentersyscall runtime.entersyscall" + entry + called: 100,
		"runtime.exitsyscall" + exit + called:                          100,
		"runtime.asmcgocall" + noted:                                   150,
		"runtime.save_g" + noted:                                       50, // arm64
		"_cgo_topofstack" + noted:                                      50,
		"_cgo_0123456789ab_Cfunc_f" + noted:                            70,
		"c_f" + noted:                                                  80,
		"c_[libf.so]" + noted:                                          20,
		"main.other main.main":                                         380,
	}
	r := New(aProfile(stacks), "test", Calibration{PerCall: Ratio{0.9, 0.8, 1}}, Stored, true, 0)
	checkSums(t, r)
	c, crossing := Of(r.Mechanisms, C), Of(r.Mechanisms, Crossing)
	if math.Abs(c.Share-0.1) > 1e-9 || c.Low != c.Share || c.High != c.Share || math.Abs(crossing.Share-0.52) > 1e-9 {
		t.Errorf("C %+v, crossing %v, want 0.1 and 0.52", c, crossing.Share)
	}
	// A function that cgo has made, and that takes longer than such a function can, has C inlined. The
	// rest of the calls is 450 samples.
	stacks["_cgo_0123456789ab_Cfunc_f"+noted] = 1070
	r = New(aProfile(stacks), "test", Calibration{}, Stored, true, 0)
	checkSums(t, r)
	if c, want := Of(r.Mechanisms, C).Share, (100+1070-450*mostMade)/2000; math.Abs(c-want) > 1e-9 {
		t.Errorf("C is %v, with 1,000 samples of inlined C, want %v", c, want)
	}
}

// TestChecks gives the check of an argument to the call on its line.
func TestChecks(t *testing.T) {
	r := New(aProfile(map[string]int64{
		"runtime.cgocall:3 main._Cfunc_free:1 main.f:5":                 10,
		"runtime.cgoCheckArg:1 runtime.cgoCheckPointer:1 main.f:5":      10,
		"runtime.cgoCheckArg:1 runtime.cgoCheckPointer:1 main.g:5":      10,
		"runtime.reentersyscall runtime.entersyscall runtime.cgocall:3": 1,
	}), "test", Calibration{}, Stored, false, 0)
	if got := Of(r.Purposes, Strings).Share; math.Abs(got-20.0/31) > 1e-9 {
		t.Errorf("strings and blocks have %v, want 20 of 31", got)
	}
}

// TestAdviceOfChecks has calls of which each has a small share of the checks.
func TestAdviceOfChecks(t *testing.T) {
	stacks := map[string]int64{"main.other main.main": 600}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		stacks["c_f runtime.cgocall:3 main._Cfunc_"+name+":1 main.f"+name+":5"] = 70
		stacks["runtime.cgoCheckArg:1 runtime.cgoCheckPointer:1 main._cgoCheckPointer:1 main.f"+name+":5"] = 10
	}
	r := New(aProfile(stacks), "test", Calibration{}, Stored, true, 0)
	if math.Abs(r.Checks-0.05) > 1e-9 || len(r.Advice) != 1 {
		t.Fatalf("checks %v, %+v", r.Checks, r.Advice)
	}
	a := r.Advice[0]
	checkLink(t, a.Link)
	if a.Site != "arguments of C.a, C.b, C.c and 2 others" || a.Now != r.Checks || a.Expected != 0 || !strings.Contains(a.Text, "uintptr_t") {
		t.Errorf("%+v", a)
	}
	var text strings.Builder
	testcall.Must(t, r.Text(&text))
	if want := "Of the crossings, a share of 5.0% is cgo's checks of pointers in arguments.\n"; !strings.Contains(text.String(), want) {
		t.Errorf("no %q in %s", want, text.String())
	}
}

// TestCompare says when the two estimates differ.
func TestCompare(t *testing.T) {
	for calls, want := range map[uint64]bool{10_000_000: false, 3_000_000: true, 40_000_000: true} {
		r := &Report{CPU: time.Second, Mechanisms: []Share{{Name: Crossing, Share: 0.25}}, Calibration: Calibration{CallNs: 25}}
		r.compare(calls)
		if r.Calls.Disagree != want {
			t.Errorf("%d calls: %+v", calls, r.Calls)
		}
	}
}

// TestStoredFigures compares the figures of the advice with the report that they are from.
func TestStoredFigures(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/reference/report.json")
	testcall.Must(t, err)
	var rows []struct {
		Table, Row string
		Procs      int
		NsPerOp    float64 `json:"ns_per_op"`
	}
	testcall.Must(t, json.Unmarshal(text, &rows))
	found := map[string]float64{}
	for _, row := range rows {
		if row.Procs == 1 {
			found[row.Table+"/"+row.Row] = row.NsPerOp
		}
	}
	for name, ns := range Stored.Ns {
		if math.Abs(found[name]/ns-1) > 0.005 {
			t.Errorf("%s is %v, and %v in docs/reference/report.json", name, ns, found[name])
		}
	}
}

// TestRows compares the pattern of the rows that are measured with the rows that are needed.
func TestRows(t *testing.T) {
	table, row, _ := strings.Cut(Stored.Rows(), "/")
	for name := range Stored.Ns {
		of, what, _ := strings.Cut(name, "/")
		if !regexp.MustCompile(table).MatchString(of) || !regexp.MustCompile(row).MatchString(what) {
			t.Errorf("%s/%s does not match %s", table, row, name)
		}
	}
	if regexp.MustCompile(row).MatchString("own-forgets") {
		t.Errorf("%s matches own-forgets", row)
	}
}

// TestAdviceOfBlocks gives advice about strings and blocks only where a function frees what it makes.
// An allocator that frees blocks of others cannot change to a Heap.
func TestAdviceOfBlocks(t *testing.T) {
	in := func(callee, function string) string {
		return "runtime.exitsyscall" + exit + " main._Cfunc_" + callee + " main." + function
	}
	for name, test := range map[string]struct {
		stacks []string
		want   string // a word of the advice
	}{
		"text":                   {[]string{in("CString", "text:2"), in("free", "text:3")}, "arena"},
		"block":                  {[]string{in("malloc", "block:2"), in("free", "block:3")}, "Heap"},
		"deferred":               {[]string{in("CString", "text:2"), in("free", "text.text.func1.func2:2")}, "arena"},
		"in a closure":           {[]string{in("malloc", "block:2"), in("free", "block.func1:4")}, "Heap"},
		"another one's closure":  {[]string{in("malloc", "block:2"), in("free", "blocks.func1:4")}, ""},
		"freed before":           {[]string{in("CString", "set:3"), in("free", "set:2")}, ""},
		"grown in a closure":     {[]string{in("malloc", "buffer:2"), in("realloc", "buffer.func1:3"), in("free", "buffer:4")}, ""},
		"freed elsewhere":        {[]string{in("malloc", "alloc.Malloc:2"), in("free", "alloc.Free:3")}, ""},
		"an allocator and texts": {[]string{in("malloc", "alloc.Malloc:2"), in("CString", "text:2"), in("free", "alloc.Free:3")}, ""},
		"grown":                  {[]string{in("malloc", "buffer:2"), in("realloc", "buffer:3"), in("free", "buffer:4")}, ""},
		"a text of C":            {[]string{in("free", "name:4")}, ""},
	} {
		stacks := map[string]int64{"main.other main.main": 100, "runtime.memmove main._Cfunc_CString main.text:2": 10}
		for _, s := range test.stacks {
			stacks[s] = 30
		}
		r := New(aProfile(stacks), "test", Calibration{}, Stored, true, 0)
		var texts []string
		for _, a := range r.Advice {
			texts = append(texts, a.Text)
			if a.Expected < 10.0/400-1e-9 && strings.Contains(test.want, "arena") {
				t.Errorf("%s: %+v: the copy stays", name, a)
			}
		}
		if all := strings.Join(texts, " "); test.want == "" && all != "" || !strings.Contains(all, test.want) {
			t.Errorf("%s: %q, want %q", name, all, test.want)
		}
	}
}

// TestAdvice looks for the advice of each kind, and for its links.
func TestAdvice(t *testing.T) {
	r := New(aProfile(map[string]int64{
		"runtime.reentersyscall runtime.entersyscall" + entry + called:                      10,
		"runtime.exitsyscall" + exit + called:                                               20,
		"runtime.cgocallbackg" + exit + called:                                              20,
		"runtime.mallocgc runtime.newobject main.f:5":                                       10,
		"runtime.memmove main._Cfunc_CString main.text:2":                                   10,
		"runtime.exitsyscall" + exit + " main._Cfunc_free main.text:3":                      10,
		"runtime.addspecial runtime.AddCleanup main.object:4":                               10,
		"runtime.SetFinalizer main.object:5":                                                10,
		"runtime.freeSpecial runtime.(*sweepLocked).sweep runtime.sweepone runtime.bgsweep": 10,
		"runtime.exitsyscall" + exit + " main._Cfunc_malloc main.block:3":                   10,
	}), "test", Calibration{}, Stored, true, 0)
	links := map[string]bool{}
	for _, a := range r.Advice {
		links[a.Link] = true
		if a.Expected >= a.Now || a.Now <= 0 || a.Text == "" || a.Basis == "" || a.Site == "" {
			t.Errorf("%+v", a)
		}
		checkLink(t, a.Link)
	}
	if len(r.Advice) != mostAdvice || !links["docs/porting.md#from-addcleanup"] || !links["docs/porting.md#from-setfinalizer"] {
		t.Errorf("%d pieces of advice, with links %v", len(r.Advice), links)
	}
	var b bytes.Buffer
	testcall.Must(t, r.Text(&b))
	for line := range strings.Lines(b.String()) {
		if len([]rune(line)) > 140 {
			t.Errorf("a line of %d characters: %s", len([]rune(line)), line)
		}
	}
}

func hasTitle(text, title string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			line = strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			line = strings.NewReplacer(" ", "-", ".", "", ",", "", "`", "").Replace(line)
			if line == title {
				return true
			}
		}
	}
	return false
}
