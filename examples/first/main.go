// First says which regular expressions match a text. Each line of its input is an
// expression:
//
//	seq 100000 | go run . 12345
//
// The expressions are objects of the C library, which the program never frees. See README.md.
package main

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"log"
	"os"
	"strings"

	"github.com/cheapgo/cheap/pace"
)

func main() {
	if err := pace.Start(pace.Options{}); err != nil { // the collector counts C memory
		log.Fatal(err)
	}
	text := strings.Join(os.Args[1:], " ")
	for expr := range lines(os.Stdin) {
		re, err := Compile(expr)
		if err != nil {
			log.Fatal(err)
		}
		if matches, _ := re.Match(text); matches {
			fmt.Println(expr)
		}
	} // no Close: C frees re after the collector has found it
}

// lines ends the program if the input cannot be read.
func lines(r io.Reader) iter.Seq[string] {
	return func(yield func(string) bool) {
		in := bufio.NewScanner(r)
		for in.Scan() {
			if !yield(in.Text()) {
				return
			}
		}
		if err := in.Err(); err != nil {
			log.Fatal(err)
		}
	}
}
