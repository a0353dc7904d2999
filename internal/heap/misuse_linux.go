package heap

import (
	"io"
	"os"
	"strings"

	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// openMaps opens the list of the mappings of the process. Tests count its calls.
var openMaps = func() (io.ReadCloser, error) { return os.Open("/proc/self/maps") }

// mappingOf looks p up among the mappings of the process, which the kernel
// lists with names: a file, [heap] for C's malloc, [stack], and since Go 1.25
// and Linux 5.17 "[anon: Go: heap]" for Go's own.
//
// The list is in the order of addresses, and is read to the mapping of p only.
func mappingOf(p uintptr) (string, bool) {
	f, err := openMaps()
	if err != nil {
		return "", false
	}
	defer f.Close()
	what := "no address of this process"
	err = procfs.Mappings(f, func(m procfs.Mapping) (more bool) {
		if uint64(p) >= m.End {
			return true
		}
		switch {
		case uint64(p) < m.Start:
		case strings.HasPrefix(m.Name, "[anon: Go"):
			what = "a Go pointer"
		case m.Name == "[heap]":
			what = "in the heap of C's malloc"
		case strings.HasPrefix(m.Name, "/"):
			what = "in the code or data of " + m.Name
		case m.Name != "":
			what = "in " + m.Name
		default:
			what = "" // a mapping without a name
		}
		return false
	})
	return what, err == nil && what != ""
}
