//go:build !cgo || !sqlite3

package main

import (
	"context"
	"fmt"
	"io"
)

// install has the commands that install SQLite.
const install = "install SQLite and pkg-config (Debian, Ubuntu: apt-get install libsqlite3-dev pkg-config; " +
	"Fedora: dnf install sqlite-devel pkgconf; macOS: brew install sqlite pkgconf) and build with -tags=sqlite3"

// run prints what is missing.
func run(_ context.Context, _ []string, _ io.Reader, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "sqlite: built without SQLite:", install)
	return 1
}
