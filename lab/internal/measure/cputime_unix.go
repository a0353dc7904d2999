//go:build unix

package measure

import (
	"time"

	"github.com/cheapgo/cheap/internal/test/cside"
)

func cpuTime() time.Duration { return cside.CPUTime() }
