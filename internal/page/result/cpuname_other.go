//go:build !linux && !darwin

package result

import "os"

// cpuName returns the name of the processor on Windows, "" elsewhere.
func cpuName() string { return os.Getenv("PROCESSOR_IDENTIFIER") }
