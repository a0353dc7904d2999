//go:build cgo

package cgoalloc

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

func TestConformance(t *testing.T) {
	malloc := &DefaultAllocator{}
	fixed := func(t *testing.T, blockSize uintptr) FixedBlockAllocator {
		a, err := CreateFixedBlockAllocator(malloc, 4096, blockSize, 8)
		testcall.Must(t, err)
		return a
	}
	t.Run("Default", func(t *testing.T) {
		cheaptest.TestAllocator(t, func(t testing.TB) (cheap.Allocator, func() error) {
			if strings.HasSuffix(t.Name(), "/Live") {
				testenv.Skip(t, "asan", "the blocks that are live when it is destroyed are leaks")
			}
			return malloc, malloc.Destroy
		}, cheaptest.Guarantees{Concurrent: true})
	})
	t.Run("Arena", func(t *testing.T) {
		cheaptest.TestAllocator(t, func(testing.TB) (cheap.Allocator, func() error) {
			a := CreateArenaAllocator(malloc)
			return a, a.Destroy
		}, cheaptest.Guarantees{})
	})
	// A FixedBlockAllocator exports no MaxSize, so it is tested as a tier only.
	t.Run("Fallback", func(t *testing.T) {
		cheaptest.TestAllocator(t, func(testing.TB) (cheap.Allocator, func() error) {
			a := CreateFallbackAllocator(fixed(t, 64), CreateFallbackAllocator(fixed(t, 1024), malloc))
			return a, a.Destroy
		}, cheaptest.Guarantees{Align: 8})
	})
}
