//go:build unix

package measure

import (
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/cside"
)

func cpuTime() time.Duration { return cside.CPUTime() }
