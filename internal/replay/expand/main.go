// Expand writes a Go file from another one or from a template, for files that differ in a few words:
//
//	//go:generate go run github.com/cheapgo/cheap/internal/replay/expand -o local.go heap.go Heap=Local
//	//go:generate go run github.com/cheapgo/cheap/internal/replay/expand -o heap_loop.go loop.tmpl type=heap alloc=p.heap
//
// In a Go file it replaces each word by the other. The template is one of text/template. Its values
// are the words behind it, "" for those that are not given. A loop over an allocator is such a file:
// a call through an interface or a type parameter would cost a tenth of the time of the faster ones.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

func main() {
	out := flag.String("o", "", "write this `file`")
	flag.Parse()
	text, err := expand(".", flag.Args())
	if err == nil {
		err = os.WriteFile(*out, text, 0o666)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "expand: %v\n", err)
		os.Exit(1)
	}
}

// expand returns the file that words make of a template or a Go file in a folder.
func expand(folder string, args []string) ([]byte, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("which file is missing")
	}
	values := make(map[string]string)
	var pairs []string
	for _, word := range args[1:] {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not of the form key=value", word)
		}
		values[key] = value
		pairs = append(pairs, key, value)
	}
	file := filepath.Join(folder, args[0])
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "// Code generated from %s by go generate. DO NOT EDIT.\n\n", filepath.Base(file))
	if filepath.Ext(file) == ".go" {
		strings.NewReplacer(pairs...).WriteString(&text, string(source))
		return format.Source(text.Bytes())
	}
	t, err := template.New(filepath.Base(file)).Option("missingkey=zero").Parse(string(source))
	if err != nil {
		return nil, err
	}
	if err := t.Execute(&text, values); err != nil {
		return nil, err
	}
	return format.Source(text.Bytes())
}
