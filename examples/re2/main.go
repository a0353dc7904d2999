// Re2 prints the lines of files that match regular expressions, as grep does.
//
//	go run -tags=re2 . [-n] [-e expression]... expression [file or folder ...]
//
// It finds them with RE2, a library of C++. See README.md.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
