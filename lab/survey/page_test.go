package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestPage compares lab/survey/README.md with the results that are stored.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("README.md")
	testcall.Must(t, err)
	page := string(text)
	want, err := figures("results")
	testcall.Must(t, err)
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); !strings.Contains(page, line) {
			t.Errorf("lab/survey/README.md does not say %q: go run ./survey -figures=survey/results has what it should say", line)
		}
	}
	findings, err := readTable("results/findings.tsv")
	testcall.Must(t, err)
	_, table, _ := strings.Cut(page, "| module | place | what is lost |\n| --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) != 20 {
		t.Errorf("there are %d findings that convince, want 20", len(rows))
	}
	for _, row := range rows {
		fields := strings.Split(row, "|")
		module, _, _ := strings.Cut(strings.TrimSpace(fields[1]), " ")
		module, place := strings.TrimSuffix(module, ","), strings.TrimSpace(fields[2])
		found := false
		for _, f := range findings {
			found = found || strings.Contains(f["module"], module) && f["place"] == place
		}
		if !found {
			t.Errorf("nothing is found at %s of %s", place, module)
		}
	}
}

// TestRead looks at the verdicts.
func TestRead(t *testing.T) {
	read, err := readTable("results/read.tsv")
	testcall.Must(t, err)
	drawn := 0
	for _, r := range read {
		if v := r["verdict"]; v != "true" && v != "false" && v != "harmless" {
			t.Errorf("%s %s: the verdict is %q", r["module"], r["place"], v)
		}
		if r["reason"] == "" {
			t.Errorf("%s %s has no reason", r["module"], r["place"])
		}
		if r["drawn"] == "yes" {
			drawn++
		}
	}
	if drawn < 100 {
		t.Errorf("%d findings were drawn and read, want 100", drawn)
	}
}

// TestTwice looks at the verdicts about what is freed twice, in the histories of repositories.
func TestTwice(t *testing.T) {
	rows, err := readTable("results/twice.tsv")
	testcall.Must(t, err)
	right := 0
	for _, r := range rows {
		if r["verdict"] == "true" {
			right++
		}
		if r["reason"] == "" || len(r["commit"]) != 12 {
			t.Errorf("%v: want a reason and twelve digits of a commit", r)
		}
	}
	page, err := os.ReadFile("README.md")
	testcall.Must(t, err)
	if want := fmt.Sprintf("[%d places](results/twice.tsv) are reported; %d are true.", len(rows), right); !strings.Contains(string(page), want) {
		t.Errorf("lab/survey/README.md does not say %q", want)
	}
}
