// Inspect is a server with the page of package inspect.
//
//	go run . [-addr localhost:6060] [-seconds 0]
//
// Its requests use memory outside the Go heap in three ways: see run.go. The page is at
// http://localhost:6060/debug/cheap/.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
