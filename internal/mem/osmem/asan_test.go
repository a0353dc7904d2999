//go:build asan

package osmem

import (
	"testing"

	"github.com/cheapgo/cheap/internal/mem/poison"
)

type regions map[uintptr]uintptr

// A sanitizer knows regions.
type sanitizer struct {
	poison.Sanitizer
	regions
}

func (s sanitizer) Register(addr, size uintptr)   { s.regions[addr] = size }
func (s sanitizer) Unregister(addr, size uintptr) { delete(s.regions, addr) }

// TestRegistered looks whether the leak sanitizer knows what is reserved, and no longer.
func TestRegistered(t *testing.T) {
	known := regions{}
	poison.Set(sanitizer{regions: known})
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
