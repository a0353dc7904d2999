//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem_test

import (
	"flag"
	"testing"
	"time"

	"github.com/cheapgo/cheap/cmem/internal/hammer"
)

var long = flag.Duration("cmem.long", time.Second, "how long TestHammer runs")

// TestHammer allocates in all ways at the same time.
func TestHammer(t *testing.T) { hammer.Run(t, *long, func() {}) }
