//go:build cgo

package cgoalloc_test

import (
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cgoalloc"
	"github.com/cheapgo/cheap/cheaptest"
)

func TestConformance(t *testing.T) {
	malloc := &cgoalloc.DefaultAllocator{}
	fixed := func(t *testing.T, blockSize uintptr) cgoalloc.FixedBlockAllocator {
		a, err := cgoalloc.CreateFixedBlockAllocator(malloc, 4096, blockSize, 8)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	t.Run("Default", func(t *testing.T) {
		cheaptest.TestPromises(t, func() cheap.Allocator { return malloc }, cheaptest.Promises{Concurrent: true})
	})
	t.Run("Arena", func(t *testing.T) {
		cheaptest.TestAllocator(t, func() cheap.Allocator { return cgoalloc.CreateArenaAllocator(malloc) })
	})
	// Fixed blocks have no exported way to say their largest size, and are tested
	// as tiers.
	t.Run("Fallback", func(t *testing.T) {
		cheaptest.TestPromises(t, func() cheap.Allocator {
			return cgoalloc.CreateFallbackAllocator(fixed(t, 64), cgoalloc.CreateFallbackAllocator(fixed(t, 1024), malloc))
		}, cheaptest.Promises{Align: 8})
	})
}
