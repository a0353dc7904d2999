package explain

import (
	"strings"
	"testing"
)

// pageReport is a report with all mechanisms, and with names that a page has to escape.
func pageReport() *Report {
	return New(aProfile(map[string]int64{
		"runtime.reentersyscall runtime.entersyscall" + entry + called:                  30,
		"c_work" + entry + called:                                                       30,
		"runtime.cgocallbackg" + exit + called:                                          10,
		"runtime.mallocgc runtime.newobject example.com/a/b.(*T[...]).Method main.main": 10,
		"runtime.lock2 main.</script><b> main.main":                                     10,
		"runtime.addspecial runtime.AddCleanup main.object:4 main.main":                 10,
		"runtime.gcDrain runtime.gcBgMarkWorker":                                        10,
	}), "<prog> & more", Calibration{}, Stored, true, 0)
}

// TestPageText looks at the page without a browser.
func TestPageText(t *testing.T) {
	var b strings.Builder
	if err := pageReport().Page(&b, "v1"); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"&lt;prog&gt; &amp; more", "C itself <b>27%</b>", "docs/porting.md#from-addcleanup", "Apache-2.0", "version v1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if n := strings.Count(text, "</script>"); n != 3 {
		t.Errorf("the page has the end of %d scripts, want 3", n)
	}
	if strings.Contains(text, "<prog>") || strings.Contains(text, "src=\"http") {
		t.Error("a name is not escaped, or the page asks others")
	}
}
