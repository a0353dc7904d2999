package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

var update = flag.Bool("update", false, "write the tables of the pages anew")

// TestPages compares the tables of each page with those of the stored figures, which are of the
// versions that are run, and must meet the bars.
func TestPages(t *testing.T) {
	const head, foot = "<!-- figures -->\n", "<!-- end -->\n"
	for _, p := range projects {
		f, err := read(p)
		testcall.Must(t, err)
		if want := newFigures(p).Modules; !slices.Equal(f.Modules, want) {
			t.Errorf("%s: the figures are of %q, not of %q", p.name, f.Modules, want)
		}
		if len(f.Tests) != len(p.suites) || len(f.Load) != len(p.ways) {
			t.Fatalf("%s: the figures are not of all suites and ways", p.name)
		}
		if err := f.verdict(p); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		page := filepath.Join(p.name, "README.md")
		text, err := os.ReadFile(page)
		testcall.Must(t, err)
		before, rest, found := strings.Cut(string(text), head)
		got, after, found2 := strings.Cut(rest, foot)
		if !found || !found2 {
			t.Fatalf("%s has no place for the figures", page)
		}
		want := f.tables(p)
		if *update {
			testcall.Must(t, os.WriteFile(page, []byte(before+head+want+foot+after), 0o666))
		} else if got != want {
			t.Errorf("%s has\n%s\nthe figures are\n%s\n(go test -update writes it anew)", page, got, want)
		}
	}
}

// TestProjects compares the tables of this package with the folders.
func TestProjects(t *testing.T) {
	for _, p := range projects {
		if p.ways[0].tree != "" || p.ours() == nil {
			t.Errorf("%s: the first way must have no tree, and another ours", p.name)
		}
		for _, w := range p.ways {
			exists := func(m module) bool {
				_, err := os.Stat(filepath.Join(p.name, w.tree, m.folder))
				return err == nil
			}
			if w.tree != "" && !slices.ContainsFunc(p.modules, exists) {
				t.Errorf("%s: there are no files in %s", p.name, w.tree)
			}
		}
		for _, b := range p.bars {
			for _, name := range []string{b.way, b.against} {
				if !slices.ContainsFunc(p.ways, func(w way) bool { return w.name == name }) {
					t.Errorf("%s: a bar is about %q, which is no way", p.name, name)
				}
			}
			if !slices.ContainsFunc(p.columns, func(c column) bool { return c.key == b.key }) {
				t.Errorf("%s: a bar is about %q, which is no column", p.name, b.key)
			}
		}
	}
}

// TestOverlay looks for the files of each way of the projects without diffs: they exist, a load is
// among them, and a tree adds some.
func TestOverlay(t *testing.T) {
	for _, p := range []*project{&pebble, &badger} {
		folder, err := filepath.Abs(p.name)
		testcall.Must(t, err)
		c := &checkout{project: p, root: t.TempDir(), folder: folder}
		for i := range p.modules {
			c.dirs = append(c.dirs, filepath.Join(c.root, "module"+strconv.Itoa(i)))
		}
		var without int
		for i := range p.ways {
			w := &p.ways[i]
			name, err := c.overlay(t.Context(), w, false)
			testcall.Must(t, err)
			text, err := os.ReadFile(name)
			testcall.Must(t, err)
			var overlay struct{ Replace map[string]string }
			testcall.Must(t, json.Unmarshal(text, &overlay))
			for to, from := range overlay.Replace {
				if _, err := os.Stat(from); err != nil || !strings.HasPrefix(to, c.root) {
					t.Errorf("%s, %s: %s for %s: %v", p.name, w.name, from, to, err)
				}
			}
			if overlay.Replace[filepath.Join(c.dirs[0], "proofload", "main.go")] == "" {
				t.Errorf("%s, %s: there is no load", p.name, w.name)
			}
			if i == 0 {
				without = len(overlay.Replace)
			} else if (len(overlay.Replace) > without) != (w.tree != "") {
				t.Errorf("%s, %s: %d files, and %d without ours", p.name, w.name, len(overlay.Replace), without)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	before := map[string]bool{"p:": true, "p:TestBoth": true, "p:TestLost": true, "p:TestGone": true, "p:TestBad": false, "p:TestMended": false}
	after := map[string]bool{"p:": true, "p:TestBoth": true, "p:TestLost": false, "p:TestBad": false, "p:TestMended": true, "q:": false}
	got := compare(before, after)
	if want := []string{"p:TestGone", "p:TestLost", "q:"}; got.Both != 1 || !slices.Equal(got.Lost, want) {
		t.Errorf("%d pass in both, and lost are %q; want 1, and %q", got.Both, got.Lost, want)
	}
	if want := []string{"p:TestBad", "p:TestMended"}; !slices.Equal(got.Failed, want) {
		t.Errorf("failed are %q, want %q", got.Failed, want)
	}
}

func TestDecode(t *testing.T) {
	const output = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA/sub"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"ImportPath":"q","Action":"build-fail"}
{"Action":"fail","Package":"p"}
`
	got, err := decode(strings.NewReader(output))
	want := map[string]bool{"p:TestA": true, "p:TestB": false, "p:": false}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v, want %v", got, err, want)
	}
	for name, passed := range want {
		if p, ok := got[name]; !ok || p != passed {
			t.Errorf("%s: %v, %v", name, p, ok)
		}
	}
	if _, err := decode(strings.NewReader("no JSON")); err == nil {
		t.Error("what is no JSON is taken")
	}
}

func TestList(t *testing.T) {
	for want, names := range map[string][]string{
		"none": nil, "TestA, TestB": {"p:", "p:TestA", "q:TestB"}, "package p, TestB": {"p:", "q:", "q:TestB"},
	} {
		if got := list(names); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	p := &project{bars: []bar{{key: "resident", way: "a", against: "b", most: 0.5}}}
	f := &figures{Load: []loaded{
		{Way: "b", Values: []map[string]float64{{"resident": 90}, {"resident": 100}, {"resident": 300}}},
		{Way: "a", Values: []map[string]float64{{"resident": 50}, {"resident": 70}, {"resident": 10}}},
	}}
	testcall.Want(t, f.verdict(p))
	p.bars[0].most = 0.49
	if f.verdict(p) == nil {
		t.Error("a bar that is not met is no error")
	}
	p.bars, f.Tests = nil, []tested{{Lost: []string{"p:TestLost"}}}
	if f.verdict(p) == nil {
		t.Error("a test that is lost is no error")
	}
}

// TestArguments calls the command with wrong arguments, and for help.
func TestArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"-h"}, 0}, {nil, 2}, {[]string{"nowhere"}, 2}, {[]string{"pebble", "pebble"}, 2},
		{[]string{"-rounds=0", "pebble"}, 2}, {[]string{"-nowhere"}, 2},
	} {
		var out, errs strings.Builder
		if got := run(t.Context(), c.args, &out, &errs); got != c.want || out.Len() > 0 || !strings.Contains(errs.String(), "NAME is one of pebble") {
			t.Errorf("%q: %d, want %d\n%s%s", c.args, got, c.want, &out, &errs)
		}
	}
}
