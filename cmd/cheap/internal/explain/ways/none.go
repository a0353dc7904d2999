//go:build !cgo || !unix

package ways

import (
	"context"
	"errors"
)

// Measure returns an error: two of the ways are about C.
func Measure(context.Context, int, int) (map[string]float64, error) {
	return nil, errors.New("this build of the command has no C; build it with a C compiler and cgo (CGO_ENABLED=1), on Unix")
}
