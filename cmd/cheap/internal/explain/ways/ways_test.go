//go:build cgo && unix

package ways

import (
	"context"
	"errors"
	"testing"
)

func TestMeasure(t *testing.T) {
	ns, err := Measure(t.Context(), 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(ns) != 4 {
		t.Errorf("measured %v", ns)
	}
	for name, took := range ns {
		if took <= 0 {
			t.Errorf("%s takes %v ns", name, took)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, 1000, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
