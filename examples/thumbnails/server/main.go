// Server draws the memory of a server whose images are in C, for three ways to free
// them.
//
//	go run . [-seconds 5] [-n 64] [chart.svg]
//
// A request makes an image of 64 KiB to 4 MiB, writes it, waits for 1 to 4 ms, and is
// done with it. It also makes 4 KiB of garbage in Go.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
