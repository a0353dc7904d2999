// Cheap measures what C memory costs in Go: calls, owners, allocators and
// strings, beside what others have published.
//
//	cheap bench [flags]
//
// It replays what real programs allocated, on the allocators of package cheap
// and on those that Go programs use today.
//
//	cheap replay [flags] [trace ...]
//
// Run `cheap bench -h` and `cheap replay -h` for their flags.
package main

import (
	"context"
	"os"
	"runtime"
)

// The main goroutine stays on the main thread: glibc gives that thread the
// arena that a program without threads allocates from, and each other thread
// one that works differently.
func init() { runtime.LockOSThread() }

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
