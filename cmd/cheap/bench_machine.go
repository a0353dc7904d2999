package main

import (
	"cmp"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// benchMachine describes this machine for the head of a report.
func benchMachine() result.Machine {
	m := thisMachine()
	return result.Machine{
		Go:     m.goVersion,
		OS:     m.goos,
		Arch:   m.goarch,
		CPU:    cmp.Or(cpuName(), "not known"),
		Cores:  m.cpus,
		GOGC:   "100", // whatever the environment says, but for rows that say that the collector is off
		Malloc: m.malloc,
		Date:   time.Now().Format(time.RFC3339),
	}
}
