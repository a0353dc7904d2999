// Cheapvet finds mistakes with C memory in Go programs with cgo. Alone it reads packages before
// cgo, so it needs no C compiler:
//
//	cheapvet ./...
//
// It is a tool for go vet and go fix as well:
//
//	go vet -vettool=$(which cheapvet) ./...
package main

import (
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/cheapgo/cheap/vet"
	"github.com/cheapgo/cheap/vet/internal/cli"
)

func main() {
	if fromGo(os.Args[1:]) {
		unitchecker.Main(vet.Analyzers()...)
	}
	os.Exit(cli.Run(vet.Analyzers(), os.Args[1:], os.Stdout, os.Stderr))
}

// fromGo reports whether go vet or go fix runs the command: to ask for its version or its flags,
// or with a file that describes a package.
func fromGo(args []string) bool {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-V=") || arg == "-flags" || strings.HasSuffix(arg, ".cfg") {
			return true
		}
	}
	return false
}
