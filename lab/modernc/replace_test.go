package memory

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplace runs the commands of README.md, for a program that uses
// modernc.org/memory. It must get this package.
func TestReplace(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```sh\n")
	commands, _, found := strings.Cut(rest, "```\n")
	if !found || !strings.Contains(commands, "-replace=modernc.org/memory=") {
		t.Fatal("README.md does not say how the module is put in")
	}
	top := t.TempDir()
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(checkout, filepath.Join(top, "cheap")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "program")
	for name, text := range map[string]string{
		"go.mod": "module example.com/program\n\ngo 1.26.0\n",
		"main.go": `package main

import (
	"fmt"

	"modernc.org/memory"
)

func main() {
	var a memory.Allocator
	p, err := a.UintptrMalloc(200)
	fmt.Println(memory.UintptrUsableSize(p), err, a.UintptrFree(p), a.Close())
}
`,
	} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var out []byte
	for line := range strings.Lines(commands + "go run .\n") {
		words := strings.Fields(line)
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir = dir
		// The sum of golang.org/x/sys, which go mod tidy adds, is in the go.sum of
		// the checkout, so that the network is not needed.
		cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "GONOSUMDB=golang.org/x/sys")
		if out, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.TrimSpace(line), err, out)
		}
	}
	// The original has 256 bytes for a request of 200.
	if got, want := string(out), "208 <nil> <nil> <nil>\n"; got != want {
		t.Errorf("the program printed %q, want %q", got, want)
	}
}
