package main

import "syscall"

// cpuName returns the name that the processor gives itself, "" if it has none.
func cpuName() string {
	name, err := syscall.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}
