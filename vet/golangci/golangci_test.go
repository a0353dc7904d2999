package golangci

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"
)

func TestPlugin(t *testing.T) {
	make, err := register.GetPlugin("cheapvet")
	if err != nil {
		t.Fatal(err)
	}
	p, err := make(nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.BuildAnalyzers()
	if err != nil || len(list) == 0 || p.GetLoadMode() != register.LoadModeTypesInfo {
		t.Errorf("%d analyzers, load mode %q, error %v", len(list), p.GetLoadMode(), err)
	}
}
