package vet_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet"
	"github.com/cheapgo/cheap/vet/internal/vettest"
)

// Analyzers with fixes have tests in their own packages.
func TestAnalyzers(t *testing.T) {
	t.Parallel()
	data := vettest.Open()
	packages := map[string][]string{
		"callbackcycle":  {"callbackcycle", "callbackuser", "callbackforever"},
		"cleanupcycle":   {"cleanupcycle", "cleanupcgo", "ignored", "ignoredfile"},
		"closeforgotten": {"closeforgotten", "closeuser"},
		"embedowner":     {"embedowner"},
		"escapes":        {"escapes"},
		"gopointer":      {"gopointer"},
		"perobject":      {"perobject", "perobjectuser"},
		"prototype":      {"prototype"},
	}
	for _, a := range vet.Analyzers() {
		if paths := packages[a.Name]; paths != nil {
			t.Run(a.Name, func(t *testing.T) {
				t.Parallel()
				data.Run(t, a, paths...)
			})
		}
	}
}

func TestNames(t *testing.T) {
	if err := analysis.Validate(vet.Analyzers()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range vet.Analyzers() {
		names = append(names, a.Name)
	}
	want := []string{"callbackcycle", "cfree", "cleanupcycle", "closeforgotten", "embedowner", "escapes", "gopointer", "keepalive", "perobject", "prototype"}
	if !slices.Equal(names, want) {
		t.Errorf("analyzers %q, want %q: the names are stable", names, want)
	}
}

// TestPage looks for each analyzer in the table of docs/tools.md.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range vet.Analyzers() {
		if !strings.Contains(string(text), "\n| "+a.Name+" | ") {
			t.Errorf("docs/tools.md has nothing about the analyzer %s", a.Name)
		}
	}
}
