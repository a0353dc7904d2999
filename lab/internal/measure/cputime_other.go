//go:build !unix

package measure

import "time"

// cpuTime returns 0: the CPU time of the process is unknown on this system.
func cpuTime() time.Duration { return 0 }
