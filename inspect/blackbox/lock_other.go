//go:build !unix || solaris || aix

package blackbox

import (
	"errors"
	"os"
)

func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

var errLocked = errors.New("cheap: the file is locked")

// lock does nothing: two processes with one path overwrite each other's records here.
func lock(*os.File) error { return nil }

func stateOf(*os.File) State { return Unknown }

func inodeOf(os.FileInfo) uint64 { return 0 }
