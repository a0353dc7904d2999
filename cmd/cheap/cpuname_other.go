//go:build !linux && !darwin

package main

import "os"

// cpuName returns what Windows calls the processor, "" elsewhere.
func cpuName() string { return os.Getenv("PROCESSOR_IDENTIFIER") }
