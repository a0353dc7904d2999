package otelmemory

import (
	"errors"
	"fmt"

	"github.com/cheapgo/cheap/internal/sample"
)

// Enable has samples fire the probes while a tracer is attached. Which blocks are sampled is
// what inspect.SetRate of package inspect says; by default none is. Enable may be called again.
//
// The error wraps [errors.ErrUnsupported]: the program was built without cgo, or for another
// system or processor.
func Enable() error {
	if !supported {
		return fmt.Errorf("otelmemory: the probes are for Linux on amd64 and arm64, with cgo: %w", errors.ErrUnsupported)
	}
	sample.SetTracer(tracer)
	return nil
}

// Disable undoes Enable. Samples that are being taken meanwhile may still fire.
func Disable() { sample.SetTracer(nil) }

// Attached reports whether a tracer is attached to the probe alloc, and to free. It does not
// matter whether Enable was called.
func Attached() (alloc, free bool) { return attached() }
