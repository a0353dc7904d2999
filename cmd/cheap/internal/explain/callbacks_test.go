package explain

import (
	"math"
	"strings"
	"testing"
)

// TestAdviceOfCallbacks has programs whose C calls functions of Go, which are named. An allocator in Go
// gets advice of its own.
func TestAdviceOfCallbacks(t *testing.T) {
	const parse = " runtime.cgocall:3 main._Cfunc_parse:1 main.load:5 main.main:1"
	in := func(name string) string {
		return " main." + name + ":1 " + map[bool]string{true: "main."}[name == "goLess"] + "_cgoexp_0123_" + name + ":1 runtime.cgocallbackg1 runtime.cgocallbackg runtime.cgocallback" + parse
	}
	way := "runtime.exitsyscall runtime.cgocallbackg runtime.cgocallback" + parse
	const others = 100
	for name, test := range map[string]struct {
		stacks map[string]int64
		want   string // the site, and what the text says
		now    float64
	}{
		"a function": {map[string]int64{way: 60, "runtime.memmove" + in("goLess"): 10}, "main.load file.go:5 C.parse: C calls main.goLess.", 60},
		"two functions": {map[string]int64{way: 60, "runtime.memmove" + in("goLess"): 10, "runtime.memmove" + in("goKey"): 20},
			"main.load file.go:5 C.parse: C calls main.goKey, main.goLess.", 60},
		"the end of objects": {map[string]int64{way: 60, "runtime.memmove" + in("goFree"): 10}, "main.load file.go:5 C.parse: C calls main.goFree.", 60},
		"a thread": {map[string]int64{
			"runtime.exitsyscall runtime.cgocallbackg runtime.cgocallback crosscall2":                                                       60,
			"runtime.memmove main.goLess:1 _cgoexp_0123_goLess:1 runtime.cgocallbackg1 runtime.cgocallbackg runtime.cgocallback crosscall2": 10,
		}, "threads of C: C calls main.goLess.", 60},
		"nobody knows": {map[string]int64{way: 60}, "main.load file.go:5 C.parse: C calls Go.", 60},
		"an allocator": {map[string]int64{
			way:                                60,
			"runtime.memmove" + in("goMalloc"): 10,
			"runtime.exitsyscall runtime.cgocall:7 main._Cfunc__CMalloc:1" + in("goMalloc"): 20,
			"runtime.exitsyscall runtime.cgocall:7 main._Cfunc_free:1" + in("go_free"):      30,
			"c_malloc runtime.cgocall:3 main._Cfunc__CMalloc:1" + in("goMalloc"):            40, // stays
		}, "main.goMalloc, main.go_free, which C calls: C allocates by functions of Go.", 120},
		"on the way back from an allocator": {map[string]int64{
			way:                                60,
			"runtime.memmove" + in("goMalloc"): 10,
			"runtime.exitsyscall runtime.cgocall:3 main._Cfunc__CMalloc:1" + in("goMalloc"): 20,
		}, "main.goMalloc, which C calls: C allocates by functions of Go.", 90},
		"half an allocator": {map[string]int64{
			way: 60, "runtime.memmove" + in("goRealloc"): 10, "runtime.memmove" + in("goLess"): 10,
		}, "main.goRealloc, which C calls: C allocates by functions of Go.", 40},
	} {
		stacks, sum := map[string]int64{"main.other main.main": others}, int64(others)
		for stack, n := range test.stacks {
			stacks[stack] = n
			sum += n
		}
		// With this one the profile says at which line cgocall calls entersyscall.
		stacks["runtime.casgstatus runtime.reentersyscall runtime.entersyscall runtime.cgocall:3 main._Cfunc_parse:1 main.load:5"] = 1
		sum++
		r := New(aProfile(stacks), "test", Calibration{}, Stored, true, 0)
		found := false
		for _, a := range r.Advice {
			checkLink(t, a.Link)
			if strings.HasPrefix(a.Site+": "+a.Text, test.want) {
				found = true
				if now := a.Now * float64(sum); math.Abs(now-test.now) > 0.01 {
					t.Errorf("%s: %.2f samples, want %.0f", name, now, test.now)
				}
			}
		}
		if !found {
			t.Errorf("%s: no advice %q in %+v", name, test.want, r.Advice)
		}
	}
}
