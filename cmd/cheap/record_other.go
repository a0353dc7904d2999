//go:build !linux

package main

import (
	"io"
	"runtime"
)

// recordCommand is `cheap record`.
func recordCommand(args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	return 0, usagef("programs are recorded on Linux only, and this is %s", runtime.GOOS)
}
