//go:build cgo

package libc_test

import (
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
	"github.com/cheapgo/cheap/libc"
)

// C's malloc need not hand out what was freed before, and sees no misuse.
func TestConformance(t *testing.T) {
	cheaptest.TestPromises(t, func() cheap.Allocator { return libc.Allocator{} }, cheaptest.Promises{Concurrent: true})
}
