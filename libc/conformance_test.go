//go:build cgo

package libc_test

import (
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
	"github.com/cheapgo/cheap/libc"
)

// C's malloc need not reuse a freed block, and detects no misuse.
func TestConformance(t *testing.T) {
	cheaptest.TestAllocator(t, func(testing.TB) cheap.Allocator { return libc.Allocator{} }, cheaptest.Guarantees{Concurrent: true})
}
