package corpus

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/cheapgo/cheap/vet"
)

var dir = flag.String("dir", "", "one")
var kinds = flag.String("kinds", "f", "")

func TestCorpus(t *testing.T) {
	start := time.Now()
	for _, a := range vet.Analyzers() {
		if f := a.Flags.Lookup("group"); f != nil {
			f.Value.Set("0")
		}
	}
	m, err := Open(*dir, vet.Analyzers(), "")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("F") != "" {
		for _, f := range m.Findings {
			fmt.Println(f)
		}
	}
	for _, k := range *kinds {
		kind, name := map[rune]Kind{'f': Free, 'k': KeepAlive, 'm': Method}[k], map[rune]string{'f': "cfree", 'k': "keepalive", 'm': "cfree"}[k]
		for _, a := range vet.Analyzers() {
			if a.Name != name {
				continue
			}
			list, err := m.Mutate(kind, a)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, mu := range list {
				if mu.Found {
					n++
				} else {
					fmt.Printf("MISSED %s:%d: %s\n", mu.File, mu.Line, mu.Text)
				}
			}
			fmt.Printf("%s %s: %d findings, found %d of %d %v\n", *dir, kind, len(m.Findings), n, len(list), time.Since(start))
		}
	}
}
