//go:build !linux || !cgo || !libjpeg

package main

import (
	"context"
	"fmt"
	"io"
)

// install has the commands that install libjpeg-turbo.
const install = "it takes Linux; install libjpeg-turbo and pkg-config (Debian: apt-get install libjpeg62-turbo-dev pkg-config; " +
	"Ubuntu: apt-get install libjpeg-turbo8-dev pkg-config; Fedora: dnf install libjpeg-turbo-devel pkgconf) and build with -tags=libjpeg"

// run prints what is missing.
func run(_ context.Context, _ []string, _ io.Reader, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "thumbnails: built without libjpeg:", install)
	return 1
}
