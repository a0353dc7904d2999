//go:build unix

package measure

import (
	"time"

	"github.com/cheapgo/cheap/internal/cside"
)

func cpuTime() time.Duration { return cside.CPUTime() }
