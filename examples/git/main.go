// Git prints the files of a git repository that were changed most often.
//
//	go run -tags=libgit2 . [-n 10] [repository]
//
// It walks the whole history with libgit2, through one of three bindings that
// differ in how C memory is freed. See README.md.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
