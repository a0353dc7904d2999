package cheap

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
)

// openMaps opens the list of the mappings of the process. Tests count its calls.
var openMaps = func() (io.ReadCloser, error) { return os.Open("/proc/self/maps") }

// mappingOf looks p up among the mappings of the process, which the kernel
// lists with names: a file, [heap] for C's malloc, [stack], and since Go 1.25
// and Linux 5.17 "[anon: Go: heap]" for Go's own.
//
// The kernel makes the list while it is read, a microsecond or so for each mapping, and a
// process may have 65,530. So the list is read to the mapping of p only: it is in the order of
// addresses.
func mappingOf(p uintptr) (string, bool) {
	f, err := openMaps()
	if err != nil {
		return "", false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// start-end, permissions, offset, device, inode, and perhaps a name
		first, last, _ := strings.Cut(lines.Text(), "-")
		last, rest, _ := strings.Cut(last, " ")
		end, err := strconv.ParseUint(last, 16, 64)
		if err != nil || uint64(p) >= end {
			continue
		}
		if start, err := strconv.ParseUint(first, 16, 64); err != nil || uint64(p) < start {
			return "no address of this process", err == nil
		}
		fields := strings.Fields(rest)
		switch name := strings.Join(fields[min(4, len(fields)):], " "); {
		case strings.HasPrefix(name, "[anon: Go"):
			return "a Go pointer", true
		case name == "[heap]":
			return "in the heap of C's malloc", true
		case strings.HasPrefix(name, "/"):
			return "in the code or data of " + name, true
		case name != "":
			return "in " + name, true
		}
		return "", false // a mapping without a name
	}
	return "no address of this process", lines.Err() == nil
}
