//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem_test

import (
	"flag"
	"testing"

	"github.com/cheapgo/cheap/cmem/internal/hammer"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

var long = flag.Duration("cmem.long", 0, "how long TestHammer runs; 0 is some thousand steps")

// TestHammer allocates in all ways at the same time.
func TestHammer(t *testing.T) {
	testenv.Skip(t, "musl", "the C part of a stack is only what has called malloc")
	hammer.Run(t, *long, func() {})
}
