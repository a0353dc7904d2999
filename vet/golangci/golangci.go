// Package golangci makes the analyzers a plugin of golangci-lint, by its module plugin system.
//
// The file .custom-gcl.yml names this package, and golangci-lint custom builds a golangci-lint
// that has it.
package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet"
)

func init() {
	register.Plugin("cheapvet", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

type plugin struct{}

// BuildAnalyzers returns all analyzers.
func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return vet.Analyzers(), nil }

// GetLoadMode says that the analyzers need types.
func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
