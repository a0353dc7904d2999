//go:build cgo && linux && !asan && !msan

package libc

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestArenasOfOthers runs TestReadArenas with other mallocs.
func TestArenasOfOthers(t *testing.T) {
	for _, library := range []string{"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"} {
		if found, _ := filepath.Glob("/usr/lib/*/" + library + "*"); len(found) == 0 {
			continue // not installed
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestReadArenas$", "-test.v")
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+library)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", library, err, out)
		}
	}
}
