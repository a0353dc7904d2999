package explain

import (
	"strings"
	"testing"
)

// TestAdviceOfBlocksBySource has functions whose profiles look alike: they call C.malloc and C.free.
func TestAdviceOfBlocksBySource(t *testing.T) {
	for name, test := range map[string]struct {
		body string // malloc is on its first line, free on its last
		want string // a word of the advice, "" for none
	}{
		"a block":             {"p := C.malloc(8)\nC.f(p)\nC.free(p)", "Heap"},
		"deferred":            {"p := (*C.int)(C.malloc(8))\ndefer C.free(unsafe.Pointer(p))", "Heap"},
		"in a closure":        {"var p = C.calloc(1, 8)\ndefer func() { C.free(p) }()", "Heap"},
		"C frees one":         {"p, q := C.malloc(8), C.malloc(8)\nC.give(q)\nC.free(p)", ""},
		"C frees it":          {"C.give(C.malloc(8))\nq := C.take()\nC.free(q)", ""},
		"of C":                {"p := C.malloc(8)\nC.give(p)\nq := C.take()\nC.free(unsafe.Pointer(q))", ""},
		"of C, beside":        {"p := C.malloc(8)\nq := C.take()\nC.free(p); C.free(unsafe.Pointer(q))", ""},
		"of the caller":       {"p := C.malloc(8)\nC.f(p)\nC.free(p); C.free(arg)", ""},
		"of a field":          {"x.p = C.malloc(8)\nC.f(x.p)\nC.free(x.p)", ""},
		"a text beside":       {"p := C.malloc(8)\ns := C.CString(text)\nC.f(p, s)\nC.free(p); C.free(unsafe.Pointer(s))", "arena"},
		"a text, and C frees": {"p := C.malloc(8)\ns := C.CString(text)\nC.give(p, s)\nC.free(unsafe.Pointer(s))", "arena"},
	} {
		text := "package main\n\nfunc f() {\n" + test.body + "\n}\n"
		dir := aFolder(t, map[string]string{"main.go": text})
		last := 4 + strings.Count(test.body, "\n")
		p := aProfile(map[string]int64{
			"main.other main.main": 100,
			"runtime.exitsyscall" + exit + " main._Cfunc__CMalloc main.f:4":                     30,
			"runtime.exitsyscall" + exit + " main._Cfunc_free main.f:" + string(rune('0'+last)): 30,
		})
		for _, f := range p.Function {
			if f.Name == "main.f" {
				f.Filename = dir + "/main.go"
			}
		}
		r := New(p, "test", Calibration{}, Stored, true, 0)
		all := ""
		for _, a := range r.Advice {
			all += a.Text
		}
		if test.want == "" && all != "" || !strings.Contains(all, test.want) {
			t.Errorf("%s: %q, want %q", name, all, test.want)
		}
	}
}
