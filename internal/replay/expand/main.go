// Expand writes a Go file from a template, for files that differ in a few words:
//
//	//go:generate go run github.com/cheapgo/cheap/internal/replay/expand -o heap_loop.go loop.tmpl type=heap alloc=p.heap
//
// The template is one of text/template. Its values are the words behind it, "" for those that are
// not given. A loop over an allocator is such a file: a call through an interface or a type
// parameter would cost a tenth of the time of the faster ones.
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

// expand returns the file that a template in a folder makes of words.
func expand(folder string, args []string) ([]byte, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("which template is missing")
	}
	values := make(map[string]string)
	for _, word := range args[1:] {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not of the form key=value", word)
		}
		values[key] = value
	}
	file := filepath.Join(folder, args[0])
	t, err := template.New(filepath.Base(file)).Option("missingkey=zero").ParseFiles(file)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "// Code generated from %s by go generate. DO NOT EDIT.\n\n", filepath.Base(file))
	if err := t.Execute(&text, values); err != nil {
		return nil, err
	}
	return format.Source(text.Bytes())
}
