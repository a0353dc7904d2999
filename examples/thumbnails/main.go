// Thumbnails makes small images of large ones, in three ways, and draws how much
// memory each takes.
//
//	go run -tags=libjpeg . [-n 400] [chart.svg]
//
// The images are in C memory, decoded by libjpeg-turbo, and nothing is ever
// closed. See README.md.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
