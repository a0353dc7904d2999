//go:build !linux

package replay

import (
	"errors"
	"fmt"
	"runtime"
)

// A resident would read what is resident; see resident_linux.go.
type resident struct{}

func openResident() (*resident, error) {
	return nil, fmt.Errorf("%w: resident memory is read from /proc, which %s has not", errors.ErrUnsupported, runtime.GOOS)
}

func (*resident) bytes() (int64, error) { return 0, errors.ErrUnsupported }
func (*resident) close() error          { return nil }
