//go:build unix && !solaris && !aix

package blackbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// openFile opens or makes a file. It follows no link at the end of the path: in a folder that all may
// write to, somebody else could lead the program to a file that only it may write.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
		return nil, fmt.Errorf("cheap: blackbox: %s is a link: %w", path, err)
	}
	return f, err
}

var errLocked = syscall.EWOULDBLOCK

// lock locks a file. On a file system that knows no locks it does nothing. A process that C code has
// forked, and that has not called exec, holds the lock as well. A reader holds one for an instant.
func lock(f *os.File) error {
	for tries := 1; ; tries++ {
		err := flock(f, syscall.LOCK_EX)
		switch {
		case !errors.Is(err, errLocked):
			return nil
		case tries == 10:
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// stateOf says of a box without Stop whether a process has it open. The lock that it takes ends when
// f is closed.
func stateOf(f *os.File) State {
	switch err := flock(f, syscall.LOCK_SH); {
	case errors.Is(err, errLocked):
		return Running
	case err != nil:
		return Unknown
	}
	return Ended
}

func inodeOf(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino)
	}
	return 0
}
