//go:build asan

package osmem

import (
	"testing"

	"github.com/cheapgo/cheap/internal/poison"
)

// TestRegistered looks whether the leak sanitizer knows what is reserved, and no longer.
func TestRegistered(t *testing.T) {
	known := map[uintptr]uintptr{}
	poison.Set(poison.Hooks{
		Register:   func(addr, size uintptr) { known[addr] = size },
		Unregister: func(addr, size uintptr) { delete(known, addr) },
	})
	p, err := Reserve(64*PageSize, 16*PageSize)
	if err != nil {
		t.Fatal(err)
	}
	if len(known) != 1 || known[p] != 64*PageSize {
		t.Errorf("%#x is reserved, and %#x registered", p, known)
	}
	Release(p, 64*PageSize)
	if len(known) != 0 {
		t.Errorf("nothing is reserved, and %#x registered", known)
	}
}
