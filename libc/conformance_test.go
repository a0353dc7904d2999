//go:build cgo

package libc_test

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/libc"
)

// C's malloc need not reuse a freed block, and detects no misuse.
func TestConformance(t *testing.T) {
	cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
		if strings.HasSuffix(t.Name(), "/Live") {
			testenv.Skip(t, "asan", "the blocks that are live at its end are leaks")
		}
		return libc.Allocator{}, nil
	}, cheaptest.Guarantees{Concurrent: true})
}
