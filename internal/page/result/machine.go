package result

import (
	"cmp"
	"os"
	"runtime"
	"strings"
	"time"
)

// ThisMachine describes this machine for the head of a report. GOGC is that of
// the measurements, whatever the environment says, and malloc what C's malloc is.
func ThisMachine(gogc, malloc string) Machine {
	return Machine{
		Go:        runtime.Version(),
		OS:        runtime.GOOS,
		Arch:      runtime.GOARCH,
		CPU:       cmp.Or(cpuName(), "unknown"),
		Cores:     runtime.NumCPU(),
		GOGC:      gogc,
		Malloc:    malloc,
		HugePages: hugePages("/sys/kernel/mm/transparent_hugepage/enabled"),
		Date:      time.Now().Format(time.RFC3339),
	}
}

// hugePages reads the mode from a file such as "always [madvise] never".
func hugePages(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "[")
	mode, _, _ := strings.Cut(rest, "]")
	return mode
}
