//go:build race && cheap_gomem

package cheap

import (
	"testing"

	"github.com/cheapgo/cheap/internal/test/testheap"
)

// TestSharedReported uses allocators for one goroutine from two that have nothing to do with each other,
// or of which one has passed the allocator to the other.
func TestSharedReported(t *testing.T) {
	for name, use := range map[string]func(h *Heap) func(){
		"Arena.Malloc": func(h *Heap) func() { a := NewArena(h, 0); return func() { a.Malloc(100) } },
		"FixedBlock.Malloc": func(h *Heap) func() {
			f := NewFixedBlock(h, FixedBlockOptions{BlockSize: 100})
			return func() { f.Malloc(100) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			testheap.MustReport(t, true, func() {
				f := use(Default())
				testheap.InTurns(f, f)
			})
		})
		t.Run("passed/"+name, func(t *testing.T) {
			testheap.MustReport(t, false, func() {
				f, passed := use(Default()), make(chan bool, 1)
				testheap.InTurns(func() { f(); passed <- true }, func() { <-passed; f() })
			})
		})
	}
}
