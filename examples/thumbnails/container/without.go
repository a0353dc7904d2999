//go:build !linux || !cgo

package main

import (
	"context"
	"fmt"
	"io"
)

// run prints what is missing.
func run(_ context.Context, _ []string, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "container: built without cgo, or not for Linux")
	return 1
}
