//go:build !asan

package asan_test

import (
	"testing"

	"github.com/cheapgo/cheap"
	_ "github.com/cheapgo/cheap/asan"
	"github.com/cheapgo/cheap/internal/mem/poison"
)

// TestNothing looks whether the package does nothing in a build without -asan.
func TestNothing(t *testing.T) {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := h.Malloc(25)
	if n := h.UsableSize(p); n != 32 {
		t.Errorf("a block of 25 bytes has %d", n) // a checked one would have 25
	}
	h.Free(p)
	if err := h.Destroy(); err != nil {
		t.Error(err)
	}
	if poison.Build || poison.On() {
		t.Error("hooks are set")
	}
}
