//go:build !cgo || !zstd

package main

import (
	"context"
	"fmt"
	"io"
)

// install has the commands that install zstd.
const install = "install zstd and pkg-config (Debian, Ubuntu: apt-get install libzstd-dev pkg-config; " +
	"Fedora: dnf install libzstd-devel pkgconf; macOS: brew install zstd pkgconf) and build with -tags=zstd"

// run prints what is missing.
func run(_ context.Context, _ []string, _ io.Reader, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "zstd: built without zstd:", install)
	return 1
}
