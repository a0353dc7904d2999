// Proofload parses pieces of Go's net/http/server.go, of 20 KB each, in two goroutines, and forgets the
// trees.
package main

import (
	"bytes"
	"go/build"
	"os"
	"path/filepath"
	"sync"

	sitter "github.com/tree-sitter/go-tree-sitter"
	golang "github.com/tree-sitter/tree-sitter-go/bindings/go"
)

const (
	trees = 600    // of a goroutine
	size  = 20_000 // of a text
)

func main() {
	start()
	source, err := os.ReadFile(filepath.Join(build.Default.GOROOT, "src", "net", "http", "server.go"))
	check(err)
	source = source[bytes.Index(source, []byte("\nfunc ")):]
	language := sitter.NewLanguage(golang.Language())
	closes := os.Getenv("PROOF_CLOSE") != ""
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			parser := sitter.NewParser()
			check(parser.SetLanguage(language))
			for i := range trees {
				at := i * 397 * (w + 1) % (len(source) - size)
				tree := parser.Parse(source[at:at+size], nil)
				cursor := tree.Walk()
				for ok := cursor.GotoFirstChild(); ok; ok = cursor.GotoNextSibling() {
					cursor.Node().KindId()
				}
				if closes {
					cursor.Close()
					tree.Close()
				}
			}
		})
	}
	wg.Wait()
	report(map[string]float64{})
}
