package main

import "syscall"

// used returns the processor time of the process, in nanoseconds.
func used() float64 {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano() + u.Stime.Nano())
}
