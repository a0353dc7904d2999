package result

import (
	"os"
	"strings"
)

// cpuName returns the name of the processor, "" if it is unknown.
func cpuName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return cpuNameIn(string(text))
}

// cpuNameIn finds the name in a text such as /proc/cpuinfo. On x86 the key is
// "model name", elsewhere one of the others.
func cpuNameIn(text string) string {
	for _, want := range []string{"model name", "cpu model", "Model", "cpu", "uarch", "Hardware"} {
		for line := range strings.Lines(text) {
			key, value, ok := strings.Cut(line, ":")
			if value = strings.TrimSpace(value); ok && strings.TrimSpace(key) == want && value != "" {
				return value
			}
		}
	}
	return ""
}
