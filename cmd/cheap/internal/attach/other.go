//go:build linux && arm64

package attach

import (
	"errors"

	"github.com/cheapgo/cheap/cmd/cheap/internal/executable"
	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
)

// A Target is a process that a library can be loaded into. On this processor there is none yet: registers and the frame of a
// signal differ, and so do relocations.
type Target struct {
	Pid     int
	Program *executable.Program
}

// Open returns an error.
func Open(pid int) (*Target, error) {
	return nil, errors.New("a process that runs is recorded on amd64 only, not on arm64 yet; start the program with cheap record")
}

// Load is never called.
func (t *Target) Load(library string, rate int) (*shared.File, error) { panic("no target") }

// Close is never called.
func (t *Target) Close() error { panic("no target") }
