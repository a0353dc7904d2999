package cli

import (
	"fmt"
	"go/ast"
	"io"
	"os"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"

	"github.com/cheapgo/cheap/vet/internal/fixes"
)

// applyFixes writes the first fix of each finding to its files, and removes these findings. Files that a program has made stay as they
// are. A finding whose fix overlaps another one stays, for the next time.
func applyFixes(graph *checker.Graph, stderr io.Writer) error {
	var files fixes.Files
	for _, act := range graph.Roots {
		made := map[string]bool{}
		for _, f := range act.Package.Syntax {
			if ast.IsGenerated(f) {
				made[act.Package.Fset.File(f.FileStart).Name()] = true
			}
		}
		act.Diagnostics = slices.DeleteFunc(act.Diagnostics, func(d analysis.Diagnostic) bool {
			return len(d.SuggestedFixes) > 0 && !made[act.Package.Fset.File(d.Pos).Name()] && files.Add(act.Package.Fset, d.SuggestedFixes[0])
		})
	}
	texts, err := files.Apply()
	if err != nil {
		return err
	}
	for name, text := range texts {
		if err := os.WriteFile(name, text, 0o666); err != nil {
			return err
		}
	}
	if len(texts) > 0 {
		fmt.Fprintf(stderr, "cheapvet: %d files fixed\n", len(texts))
	}
	return nil
}
