//go:build unix

package cside

import (
	"syscall"
	"time"
)

// CPUTime returns the time that the process has spent on processors, in user
// code and in the system, all threads together.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
