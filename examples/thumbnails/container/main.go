// Container shows who lives in a container: programs whose objects are in C run in a memory cgroup of
// their own, with several ways to free the objects.
//
//	go run . [-program server] [-n 64] [-limit 300] [-seconds 5] [-ways cleanup,close,own] [chart.svg]
//	go run . -table [-seconds 60]
//
// It needs to be root, or to be in a cgroup in which it may make others. -table runs all programs
// with 1, 8 and 64 goroutines, each with a quarter and 16 MiB more than it needs if objects are freed by
// hand.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
