//go:build !unix

package main

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }

// peakResident is not known here.
func peakResident() int64 { return 0 }
