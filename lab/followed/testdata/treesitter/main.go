// Command treesitter counts the kinds of nodes in the syntax tree of a file of Go, by a cursor of
// go-tree-sitter. With -followed it does what `cheap explain` says of it:
//
//	main.count main.go, for, 5 functions of C: one function of C that makes the calls of a round
//
// The loop is count in main.go before, and countRounds in round.go behind. On two cores of an AMD EPYC
// the advice promised 0.52 of the processor time, and 0.48 of it was gone. At first it promised 0.35: the Go
// code of the binding goes as well.
package main

import (
	"flag"
	"fmt"
	"go/build"
	"log"
	"os"
	"path/filepath"

	sitter "github.com/tree-sitter/go-tree-sitter"
	golang "github.com/tree-sitter/tree-sitter-go/bindings/go"
)

func main() {
	followed := flag.Bool("followed", false, "follow the advice")
	walks := flag.Int("walks", 400, "walk the tree so often")
	flag.Parse()
	source, err := os.ReadFile(filepath.Join(build.Default.GOROOT, "src", "net", "http", "server.go"))
	if err != nil {
		log.Fatal(err)
	}
	walk := count
	if *followed {
		walk = countRounds
	}
	fmt.Println(run(source, *walks, walk))
}

// found is what a walk finds.
type found struct {
	kinds map[uint16]int
	bytes uint // of all nodes
}

// run parses a file, and walks its tree again and again.
func run(source []byte, walks int, walk func(*sitter.TreeCursor, *found)) found {
	parser := sitter.NewParser()
	defer parser.Close()
	if err := parser.SetLanguage(sitter.NewLanguage(golang.Language())); err != nil {
		log.Fatal(err)
	}
	tree := parser.Parse(source, nil)
	defer tree.Close()
	f := found{kinds: map[uint16]int{}}
	for range walks {
		cursor := tree.Walk()
		walk(cursor, &f)
		cursor.Close()
	}
	return f
}

// count is as one writes it with the binding.
func count(cursor *sitter.TreeCursor, f *found) {
	for {
		node := cursor.Node()
		f.kinds[node.KindId()]++
		f.bytes += node.EndByte() - node.StartByte()
		if cursor.GotoFirstChild() {
			continue
		}
		for !cursor.GotoNextSibling() {
			if !cursor.GotoParent() {
				return
			}
		}
	}
}
