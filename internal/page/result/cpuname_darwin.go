package result

import "syscall"

// cpuName returns the name of the processor, "" if it is unknown.
func cpuName() string {
	name, err := syscall.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}
