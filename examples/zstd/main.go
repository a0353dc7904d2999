// Zstd compresses or decompresses files, or its input, to its output.
//
//	go run -tags=zstd . [-d] [-level n] [file...]
//
// With the flag -forget it measures what forgotten compressors cost in memory. See
// README.md.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
