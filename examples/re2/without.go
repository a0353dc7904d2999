//go:build !cgo || !re2

package main

import (
	"fmt"
	"io"
)

// install has the commands that install RE2.
const install = "install RE2, pkg-config and a C++ compiler (Debian, Ubuntu: apt-get install g++ libre2-dev pkg-config; " +
	"Fedora: dnf install gcc-c++ re2-devel pkgconf; macOS: brew install re2 pkgconf) and build with -tags=re2"

// run prints what is missing.
func run(_ []string, _ io.Reader, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "re2: built without RE2:", install)
	return 1
}
