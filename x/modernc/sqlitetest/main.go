// Sqlitetest does work in SQL, or with the API of modernc.org/memory itself, and
// prints a digest of all results with what the work took.
//
//	go run . [-scale n] [-conns n] [-cpuprofile file] work
//
// The memory below it is that of this repository. With -modfile=original.mod,
// which has no replace line, it is that of modernc.org. The tests build it both
// ways and compare.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
