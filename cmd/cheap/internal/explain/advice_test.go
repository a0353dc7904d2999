package explain

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// checkLink looks for the heading that a link of advice leads to.
func checkLink(t *testing.T, link string) {
	t.Helper()
	file, title, _ := strings.Cut(link, "#")
	text, err := os.ReadFile("../../../../" + file)
	testcall.Must(t, err)
	if !hasTitle(string(text), title) {
		t.Errorf("%s has no title %s", file, title)
	}
}

// TestAdviceNames has programs for which a package of this repository is the answer, and programs
// for which it is not.
func TestAdviceNames(t *testing.T) {
	// The stacks of a call of C, by what is the leaf.
	in := func(leaf, call string) string { return leaf + entry + " main._Cfunc_" + call }
	cross := func(call string) string { return "runtime.exitsyscall" + exit + " main._Cfunc_" + call }
	const (
		mark  = "runtime.scanobject runtime.gcDrain runtime.gcBgMarkWorker"
		sweep = "runtime.sweepone runtime.GC "
	)
	packages := map[string]string{"calls": "package calls", "own": "package own", "cmem": "module cmem", "pace": "package pace"}
	for name, test := range map[string]struct {
		stacks string // with semicolons between them; each has 30 samples, and other code 100
		want   string
	}{
		"many calls":                       {cross("column:1 main.row:5") + ";" + cross("step:1 main.row:6"), "calls"},
		"one call":                         {cross("step:1 main.rows:5"), "calls"},
		"long calls":                       {in("c_step", "step:1 main.rows:5"), ""},
		"a list":                           {"runtime.exitsyscall" + exit + " github.com/cheapgo/cheap/calls._Cfunc_cheap_calls_run github.com/cheapgo/cheap/calls.(*List).Run main.rows:5", ""},
		"cleanups":                         {"runtime.addspecial runtime.AddCleanup main.object:4", "own"},
		"finalizers":                       {"runtime.addspecial runtime.SetFinalizer main.object:4", "own"},
		"owners":                           {"runtime.memmove github.com/cheapgo/cheap/own.(*Handle[...]).Own main.object:4", ""},
		"C that allocates":                 {in("malloc", "parse:1 main.load:5") + ";" + in("_int_free", "parse:1 main.load:5"), "cmem"},
		"C++ that allocates":               {in("_Znwm", "parse:1 main.load:5"), "cmem"},
		"a thread of C that allocates":     {"je_malloc", "cmem"},
		"C that allocates in a cleanup":    {in("free", "destroy:1 main.free:5 runtime.runCleanups"), "cmem"},
		"blocks of Go":                     {in("malloc", "malloc:1 main.alloc:5"), ""},
		"C without names":                  {in("c_[libc.so.6]", "parse:1 main.load:5"), ""},
		"a function of Go":                 {"main.malloc main.load", ""},
		"collections by the program":       {sweep + "main.load:5;" + mark + ";" + in("c_load", "load:1 main.load:4"), "pace"},
		"all memory back":                  {sweep + "runtime/debug.freeOSMemory runtime/debug.FreeOSMemory main.load:5;" + mark + ";" + in("c_load", "load:1 main.load:4"), "pace"},
		"collections by package pace":      {sweep + "github.com/cheapgo/cheap/pace.(*pacer).collect;" + mark, "pace"},
		"collections by a benchmark":       {sweep + "testing.(*B).runN testing.(*B).run1.func1;" + mark + ";" + in("c_load", "load:1 main.load:4"), ""},
		"collections by a program in Go":   {sweep + "main.load:5;" + mark, ""},
		"collections by the Go heap alone": {mark + ";" + in("c_load", "load:1 main.load:4"), ""},
		"all": {cross("column:1 main.row:5") + ";runtime.addspecial runtime.AddCleanup main.object:4;" + in("malloc", "parse:1 main.load:5") + ";" +
			sweep + "main.load:5;" + mark, "calls cmem own pace"},
	} {
		stacks := map[string]int64{"main.other main.main": 100}
		for s := range strings.SplitSeq(test.stacks, ";") {
			stacks[s] = 30
		}
		r := New(aProfile(stacks), "test", Calibration{}, Stored, true, 0)
		named := map[string]bool{}
		for _, a := range r.Advice {
			checkLink(t, a.Link)
			if a.Site == "" || a.Text == "" || a.Open != (a.Basis == "") || a.Open != (a.Now == a.Expected) {
				t.Errorf("%s: %+v", name, a)
			}
			for pkg, words := range packages {
				if strings.Contains(strings.ToLower(a.Text), words) {
					named[pkg] = true
				}
			}
		}
		if got := strings.Join(slices.Sorted(maps.Keys(named)), " "); got != test.want {
			t.Errorf("%s: the advice names %q, want %q:\n%+v", name, got, test.want, r.Advice)
		}
	}
}

// TestBeforeMalloc has a library whose malloc is made of functions without symbols.
func TestBeforeMalloc(t *testing.T) {
	for next, want := range map[string]bool{"qsort": false, "__libc_malloc": true, "free": true, "obstack_free": false, "": false} {
		if got := isBeforeMalloc(next); got != want {
			t.Errorf("before %q: %v", next, got)
		}
	}
	for name, want := range map[string]bool{"[libc.so.6 malloc]": true, "[libc.so.6]": false, "free": true, "freeaddrinfo": false} {
		if got := isMalloc(frame{function: name, isC: true}); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAdviceOfLittle has programs in which memory of C takes little time.
func TestAdviceOfLittle(t *testing.T) {
	r := New(aProfile(map[string]int64{
		"main.other main.main":                       100,
		"malloc" + entry + called:                    4,
		"runtime.sweepone runtime.GC main.f:5":       2,
		"c_work" + entry + called:                    20,
		"runtime.scanobject runtime.gcBgMarkWorker ": 2,
	}), "test", Calibration{}, Stored, true, 0)
	if len(r.Advice) > 0 {
		t.Errorf("%+v", r.Advice)
	}
}

// TestOpenAdvice looks at advice for which nothing is promised.
func TestOpenAdvice(t *testing.T) {
	r := New(aProfile(map[string]int64{"malloc" + entry + called: 10, "main.main": 10}), "test", Calibration{}, Stored, true, 0)
	var text, page strings.Builder
	testcall.Must(t, r.Text(&text))
	testcall.Must(t, r.Page(&page, ""))
	for _, got := range []string{text.String(), page.String()} {
		if !strings.Contains(got, "The most of it, 50%, is below main.f C.work.") || strings.Contains(got, "then about") || strings.Contains(got, "Expected from") {
			t.Errorf("%s", got)
		}
	}
}

// TestOurs looks for the packages of the checkout. Those of the folders that have programs, models, examples
// and measurements are as those of a user; all others are ours.
func TestOurs(t *testing.T) {
	const root, module = "../../../..", "github.com/cheapgo/cheap"
	programs := []string{"cmd", "examples", "lab", "proof", "tools", "vet"}
	count, found := map[bool]int{}, map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if base := d.Name(); name != root && (base == "testdata" || base[0] == '.' || base[0] == '_') {
			return filepath.SkipDir
		}
		files, _ := filepath.Glob(filepath.Join(name, "*.go"))
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
			if err != nil {
				return err
			}
			if strings.HasSuffix(file, "_test.go") || f.Name.Name == "main" {
				continue
			}
			dir, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			dir = filepath.ToSlash(dir)
			folder, _, _ := strings.Cut(strings.TrimPrefix(dir, "."), "/")
			want := !slices.Contains(programs, folder)
			count[want]++
			found[folder] = true
			if got := isOurs(path.Join(module, dir)); got != want {
				t.Errorf("%s: ours is %v", path.Join(module, dir), got)
			}
			return nil
		}
		return nil
	})
	testcall.Must(t, err)
	if count[true] < 30 || count[false] < 30 {
		t.Errorf("%d packages are ours, %d are not", count[true], count[false])
	}
	for folder := range ours {
		if !found[folder] {
			t.Errorf("there is no folder %q", folder)
		}
	}
	for _, pkg := range []string{"github.com/cheapgo/cheap/x/cgoalloc", "github.com/cheapgo/cheap/own/internal/intake"} {
		if !isOurs(pkg) {
			t.Errorf("%q is not ours", pkg)
		}
	}
	for _, pkg := range []string{"github.com/cheapgo/cheaper", "github.com/cheapgo/cheap/own_test", "example.com/own", "main", ""} {
		if isOurs(pkg) {
			t.Errorf("%q is ours", pkg)
		}
	}
}

// TestAdviceOfEscapes has functions whose variables are allocated because C gets their addresses.
func TestAdviceOfEscapes(t *testing.T) {
	dir := aFolder(t, map[string]string{"main.go": `package main

func f() {
	var n C.size_t
	m, err := 1, error(nil)
	other := new(int)
	C.read(p, &n, (*C.int)(unsafe.Pointer(&m)))
	C.read(p, &n, nil)
}
`})
	for name, test := range map[string]struct {
		lines []int64 // that allocate
		want  float64 // samples of 10 in each
	}{
		"on its line":           {[]int64{7}, 10},
		"a variable":            {[]int64{4}, 10},
		"both":                  {[]int64{4, 5, 7}, 30},
		"what C does not get":   {[]int64{6}, 0},
		"one call and the next": {[]int64{4, 8}, 20},
	} {
		stacks := map[string]int64{
			"main.other main.main": 50,
			"runtime.exitsyscall" + exit + " main._Cfunc_read main.f:7": 20,
			"runtime.exitsyscall" + exit + " main._Cfunc_read main.f:8": 20,
		}
		for _, line := range test.lines {
			stacks[fmt.Sprintf("runtime.nextFreeFast runtime.mallocgc runtime.newobject main.f:%d", line)] = 10
		}
		p := aProfile(stacks)
		for _, f := range p.Function {
			if f.Name == "main.f" {
				f.Filename = filepath.Join(dir, "main.go")
			}
		}
		got := 0.0
		for _, a := range New(p, "test", Calibration{}, Stored, true, 0).Advice {
			if strings.Contains(a.Text, "noescape") {
				got += a.Now * float64(90+10*len(test.lines))
			}
		}
		if math.Abs(got-test.want) > 0.01 {
			t.Errorf("%s: %.2f samples, want %.0f", name, got, test.want)
		}
	}
}
