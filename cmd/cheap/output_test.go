package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/cmd/cheap/internal/page"
	"github.com/cheapgo/cheap/internal/result"
)

func TestKindOf(t *testing.T) {
	for args, want := range map[string]page.Kind{
		"": page.Whole, "-format json -o x": page.Whole, "-quick": page.Quick, "-quick=false": page.Whole, "-run calls": page.Part,
		"-quick -cpu 1": page.Part, "-cpu 1 -quick": page.Part, "-count 3": page.Part,
	} {
		t.Chdir(t.TempDir())
		s, _, err := parseBench(strings.Fields(args))
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if s.out.kind != want {
			t.Errorf("%q is of kind %s, want %s", args, s.out.kind, want)
		}
		if text := strings.TrimSpace("cheap bench " + args); s.command != text {
			t.Errorf("the command is %q, want %q", s.command, text)
		}
	}
}

// TestInterruptedPage checks that the page of an interrupted run is a part, and that the
// whole one stays.
func TestInterruptedPage(t *testing.T) {
	r := &result.Report{Partial: true, Tables: []result.Table{{Name: "t", Chart: result.Bars}}, Rows: []result.Row{{Table: "t", Row: "a", Procs: 1, NsPerOp: 1}}}
	for _, format := range []string{"text", "html"} {
		t.Chdir(t.TempDir())
		o := output{kind: page.Whole}
		if err := o.parse(format, ""); err != nil {
			t.Fatal(err)
		}
		if err := o.write(r, new(strings.Builder), new(strings.Builder)); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob("*")
		if len(files) != 1 || files[0] != "cheap-report-part.html" {
			t.Errorf("%s: the files are %q", format, files)
			continue
		}
		text, err := os.ReadFile(files[0])
		if err != nil || page.KindOf(text) != page.Part {
			t.Errorf("%s: the page is of kind %q, %v", format, page.KindOf(text), err)
		}
	}
}

// TestIgnored checks that git ignores the pages.
func TestIgnored(t *testing.T) {
	text, err := os.ReadFile("../../.gitignore")
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range pageNames {
		ignored := false
		for line := range strings.Lines(string(text)) {
			match, _ := filepath.Match(strings.TrimSpace(line), name)
			ignored = ignored || match
		}
		if !ignored {
			t.Errorf("%s, the page of kind %s, is not in .gitignore", name, kind)
		}
	}
}

// TestUsageIsNarrow checks that the usage fits a terminal of 80 columns.
func TestUsageIsNarrow(t *testing.T) {
	for line := range strings.Lines(usage) {
		if n := len(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "        ")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
