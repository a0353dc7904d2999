package vet_test

import (
	"go/ast"
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

// TestRecall counts the functions in package recall whose names begin with bad and in which something is found. In one whose name begins
// with good nothing may be. What is not found is listed, so that the list is looked at when an analyzer finds more.
func TestRecall(t *testing.T) {
	t.Parallel()
	data := vettest.Open()
	found, all := map[string]bool{}, map[string]bool{}
	for _, a := range vet.Analyzers() {
		if a.Name == "perobject" {
			continue
		}
		act := data.Act(t, a, "recall")
		for _, f := range act.Package.Syntax {
			for _, d := range f.Decls {
				name := nameOf(d)
				all[name] = true
				for _, diag := range act.Diagnostics {
					if position, file := act.Package.Fset.Position(diag.Pos), act.Package.Fset.Position(d.Pos()); position.Filename == file.Filename && file.Line <= position.Line && position.Line <= act.Package.Fset.Position(d.End()).Line {
						found[name] = true
						if strings.HasPrefix(name, "good") {
							t.Errorf("%s: %s: %s", position, name, diag.Message)
						}
					}
				}
			}
		}
	}
	var missed []string
	for name := range all {
		if strings.HasPrefix(name, "bad") && !found[name] {
			missed = append(missed, name)
		}
	}
	slices.Sort(missed)
	if want := []string{"badGrow", "badKept", "badNumber"}; !slices.Equal(missed, want) {
		t.Errorf("not found: %q, want %q", missed, want)
	}
}

func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		if s, ok := d.Specs[0].(*ast.ValueSpec); ok {
			return s.Names[0].Name
		}
	}
	return ""
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
