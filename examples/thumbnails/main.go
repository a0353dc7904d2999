// Thumbnails makes small images of large ones, in four ways, and draws the memory of
// each.
//
//	go run -tags=libjpeg . [-n 400] [chart.svg]
//
// The images are in C memory, decoded by libjpeg-turbo, and no image is ever closed.
// See README.md.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
