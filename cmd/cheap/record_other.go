//go:build !linux || !(amd64 || arm64)

package main

import (
	"context"
	"io"
	"runtime"
)

// recordCommand is `cheap record`.
func recordCommand(args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	return 0, usagef("programs are recorded on Linux, on amd64 and arm64, and this is %s/%s", runtime.GOOS, runtime.GOARCH)
}

// watchPid is for cheap top -pid.
func watchPid(context.Context, int, io.Writer, func(context.Context, func(io.Writer) error) error) error {
	_, err := recordCommand(nil, nil, nil, nil)
	return err
}
