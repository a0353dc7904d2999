// Cache measures a cache whose values are outside the Go heap, beside a map of
// slices. It also measures the cost of evictions that wait for a failed Malloc.
//
//	go run . [-n 1000000] [-rounds 5]
//
// The cache is the package internal/cache. See README.md.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
