// Package vet has analyzers that find mistakes with C memory in Go programs with cgo, whether or
// not they use package cheap.
//
// Each analyzer has a package. The command cheapvet runs all of them, alone or for go vet.
package vet

import (
	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet/callbackcycle"
	"github.com/cheapgo/cheap/vet/cfree"
	"github.com/cheapgo/cheap/vet/cleanupcycle"
	"github.com/cheapgo/cheap/vet/closeforgotten"
	"github.com/cheapgo/cheap/vet/embedowner"
	"github.com/cheapgo/cheap/vet/escapes"
	"github.com/cheapgo/cheap/vet/gopointer"
	"github.com/cheapgo/cheap/vet/keepalive"
	"github.com/cheapgo/cheap/vet/perobject"
	"github.com/cheapgo/cheap/vet/prototype"
)

// Analyzers returns all analyzers, in the order of their names.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{
		callbackcycle.Analyzer,
		cfree.Analyzer,
		cleanupcycle.Analyzer,
		closeforgotten.Analyzer,
		embedowner.Analyzer,
		escapes.Analyzer,
		gopointer.Analyzer,
		keepalive.Analyzer,
		perobject.Analyzer,
		prototype.Analyzer,
	}
}
