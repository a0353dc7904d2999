//go:build !unix

package measure

import "time"

// cpuTime is 0: the CPU time of the process is not known here.
func cpuTime() time.Duration { return 0 }
