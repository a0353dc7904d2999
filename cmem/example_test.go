//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem_test

import (
	"fmt"
	"os"

	"github.com/cheapgo/cheap/cmem"
)

// A server writes this when it is asked for its C heap.
func Example() {
	if why := cmem.Off(); why != "" {
		fmt.Fprintln(os.Stderr, "no profile of the C heap:", why)
		return
	}
	stats := cmem.ReadStats()
	fmt.Fprintf(os.Stderr, "%d calls of malloc; about %d bytes in use, ± %d\n", stats.Mallocs, stats.Live, stats.LiveError)
	libraries, err := cmem.Libraries()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	for _, l := range libraries {
		fmt.Fprintf(os.Stderr, "%12d bytes %s\n", l.Live, l.Name)
	}
	f, err := os.CreateTemp("", "c-heap-*.pb.gz")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer os.Remove(f.Name())
	if err := cmem.WriteProfile(f); err != nil { // for go tool pprof
		fmt.Fprintln(os.Stderr, err)
	}
	f.Close()
	// Output:
}
