//go:build !linux

package resident

import (
	"errors"
	"fmt"
	"runtime"
)

// A Reader would read what is resident; see resident_linux.go.
type Reader struct{}

func open(string) (*Reader, error) {
	return nil, fmt.Errorf("%w: resident memory is read from /proc, which %s has not", errors.ErrUnsupported, runtime.GOOS)
}

// Bytes returns [errors.ErrUnsupported].
func (*Reader) Bytes() (int64, error) { return 0, errors.ErrUnsupported }

// Close does nothing.
func (*Reader) Close() error { return nil }
