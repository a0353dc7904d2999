// Sqlitetest does work in SQL, or with the API of modernc.org/memory itself, and prints
// a digest of all results and the cost of the work.
//
//	go run . [-scale n] [-conns n] [-cpuprofile file] work
//
// It uses package memory of this repository. With -modfile=original.mod, which has no
// replace line, it uses that of modernc.org. The tests build both and compare.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
