package vet_test

import (
	"slices"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/cheapgo/cheap/vet"
)

// Analyzers with fixes have tests in their own packages.
func TestAnalyzers(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1") // go list leaves packages with cgo out without it
	packages := map[string][]string{
		"cleanupcycle":   {"cleanupcycle", "ignored", "ignoredfile"},
		"closeforgotten": {"closeforgotten", "closeuser"},
		"escapes":        {"escapes"},
		"gopointer":      {"gopointer"},
		"perobject":      {"perobject", "perobjectuser"},
	}
	for _, a := range vet.Analyzers() {
		if paths := packages[a.Name]; paths != nil {
			t.Run(a.Name, func(t *testing.T) { analysistest.Run(t, analysistest.TestData(), a, paths...) })
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
	want := []string{"cfree", "cleanupcycle", "closeforgotten", "escapes", "gopointer", "keepalive", "perobject"}
	if !slices.Equal(names, want) {
		t.Errorf("analyzers %q, want %q: the names are stable", names, want)
	}
}
