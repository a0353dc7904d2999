package splice

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

var gorootOnce = sync.OnceValues(func() (string, error) { return Goroot(context.Background(), ".") })

// goroot returns the installation that runs the tests.
func goroot(t *testing.T) string {
	t.Helper()
	root, err := gorootOnce()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// installations returns that, and the others that the go command has downloaded.
func installations(t *testing.T) []string {
	t.Helper()
	all := []string{goroot(t)}
	cache, err := os.UserHomeDir()
	if path := os.Getenv("GOPATH"); path != "" {
		cache = filepath.SplitList(path)[0]
	} else if err == nil {
		cache = filepath.Join(cache, "go")
	}
	others, err := filepath.Glob(filepath.Join(cache, "pkg", "mod", "golang.org", "toolchain@*"))
	if err != nil {
		t.Fatal(err)
	}
	return append(all, others...)
}

// made are the versions that the change was made for.
var made = regexp.MustCompile(`^go1\.2[67](\.\d+)?$`)

func TestInstallations(t *testing.T) {
	for _, root := range installations(t) {
		text, err := os.ReadFile(filepath.Join(root, "VERSION"))
		if err != nil {
			continue // not unpacked
		}
		version, _, _ := strings.Cut(string(text), "\n")
		t.Run(version, func(t *testing.T) {
			err := Supported(root)
			var unmatched *Unmatched
			switch {
			case made.MatchString(version) && err != nil:
				t.Error(err)
			case err != nil && !errors.As(err, &unmatched):
				t.Errorf("not an Unmatched: %v", err)
			}
		})
	}
}

// copyRuntime makes a folder with the files of the runtime that matter.
func copyRuntime(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	to := filepath.Join(root, "src", "runtime")
	if err := os.MkdirAll(to, 0o777); err != nil {
		t.Fatal(err)
	}
	from, err := filepath.Glob(filepath.Join(goroot(t), "src", "runtime", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range from {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("special")) {
			write(t, filepath.Join(to, filepath.Base(path)), text)
		}
	}
	return root
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestChangedSource makes changes to the runtime, as later versions may.
func TestChangedSource(t *testing.T) {
	for _, test := range []struct {
		name, file, old, new string
		want                 string // in the error; "" for none
	}{
		{"nothing", "mheap.go", "", "", ""},
		{"a comment in the walk", "mheap.go", "// Find splice point, check for existing record.\n\titer := &span.specials", "iter := &span.specials // begin", ""},
		{"another function", "mheap.go", "func (h *mheap) reclaim(", "func unrelated() {}\n\nfunc (h *mheap) reclaim(", ""},
		{"a field of a span", "mheap.go", "\tlargeType ", "\tunrelated uintptr\n\tlargeType ", ""},

		{"the walk", "mheap.go", "offset == s.offset && kind < s.kind", "offset == s.offset && kind <= s.kind", "another (*mspan).specialFindSplicePoint"},
		{"the sweep", "mgcsweep.go", "siter := newSpecialsIter(s)", "siter := specialsIter{&s.specials, s.specials}", "another (*sweepLocked).sweep"},
		{"how a cleanup is unlinked", "mcleanup.go", "*iter = s.next\n\t\t\t\tfound = s", "found, *iter = s, s.next", "another Cleanup.Stop"},
		{"the list's elements", "mheap.go", "\tnext   *special // linked", "\tprev, next *special // linked", "another special "},
		{"a new function that changes a list", "mheap.go", "func (h *mheap) reclaim(", "func (span *mspan) drop() { span.specials = nil }\n\nfunc (h *mheap) reclaim(", "has (*mspan).drop"},
		{"another function of a known name", "mheap.go", "func (h *mheap) reclaim(", "func getWeakHandle() { new(mspan).specials = nil }\n\nfunc (h *mheap) reclaim(", "another getWeakHandle"},
		{"a known function that is gone", "mheap.go", "func inTinyBlock(", "func (inUse) inTinyBlock(", "has inUse.inTinyBlock"},
		{"the head's type", "mheap.go", "specials              *special ", "specials              atomic.Pointer[special] ", "no mspan"},
		{"a span that is used again", "mheap.go", "span.specials = nil\n\tspan.needzero", "span.needzero", "no (*mspan).init"},
		{"no Go", "mheap.go", "func (h *mheap) reclaim(", "func func", "expected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := copyRuntime(t)
			path := filepath.Join(root, "src", "runtime", test.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if test.old != "" {
				if n := bytes.Count(text, []byte(test.old)); n != 1 {
					t.Fatalf("what is to be replaced is there %d times", n)
				}
				write(t, path, bytes.Replace(text, []byte(test.old), []byte(test.new), 1))
			}
			err = Supported(root)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got the error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	digests, err := declarations(goroot(t))
	if err != nil {
		t.Fatal(err)
	}
	delete(digests, "inTinyBlock")
	if err := check(digests); err == nil || !strings.Contains(err.Error(), "has no inTinyBlock") {
		t.Errorf("got %v where a function is missing", err)
	}
}

func TestNoSource(t *testing.T) {
	err := Supported(t.TempDir())
	var unmatched *Unmatched
	if err == nil || errors.As(err, &unmatched) {
		t.Errorf("got %v for a folder without Go", err)
	}
}

// TestRewriteText removes what was inserted, which leaves the original.
func TestRewriteText(t *testing.T) {
	path, text, err := rewrite(goroot(t))
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for _, put := range []struct {
		text  string
		times int
	}{{field + "\n\t", 1}, {forget + "\n\t", 2}, {mark, 1}} {
		if n := strings.Count(got, put.text); n != put.times {
			t.Errorf("%q is there %d times, not %d", put.text, n, put.times)
		}
		got = strings.ReplaceAll(got, put.text, "")
	}
	got = strings.Replace(got, walk, originalWalk(t, string(old)), 1)
	if got != string(old) {
		t.Error("something else has changed")
	}
}

// originalWalk returns the function of the runtime that is replaced.
func originalWalk(t *testing.T, text string) string {
	t.Helper()
	const head = "func (span *mspan) specialFindSplicePoint("
	begin := strings.Index(text, head)
	if begin < 0 {
		t.Fatal("no walk")
	}
	end := strings.Index(text[begin:], "\n}\n")
	return text[begin : begin+end+len("\n}")]
}
