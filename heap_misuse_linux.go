package cheap

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// mappingOf looks p up among the mappings of the process, which the kernel
// lists with names: a file, [heap] for C's malloc, [stack], and since Go 1.25
// and Linux 5.17 "[anon: Go: heap]" for Go's own.
func mappingOf(p uintptr) (string, bool) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return "", false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// address range, permissions, offset, device, inode, and perhaps a name
		fields := strings.Fields(lines.Text())
		var start, end uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x", &start, &end); n != 2 || p < start || p >= end {
			continue
		}
		switch name := strings.Join(fields[min(5, len(fields)):], " "); {
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
