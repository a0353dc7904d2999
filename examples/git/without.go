//go:build !cgo || !libgit2

package main

import (
	"context"
	"fmt"
	"io"
)

// install has the commands that install libgit2.
const install = "install libgit2 and pkg-config (Debian, Ubuntu: apt-get install libgit2-dev pkg-config; " +
	"Fedora: dnf install libgit2-devel pkgconf; macOS: brew install libgit2 pkgconf) and build with -tags=libgit2"

// run prints what is missing.
func run(_ context.Context, _ []string, _ io.Reader, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "git: built without libgit2:", install)
	return 1
}
