package cheaparrow_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme runs the commands of README.md, for a program outside of the checkout.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```sh\n")
	commands, _, found := strings.Cut(rest, "```\n")
	if !found || !strings.Contains(commands, "/x/arrow=") {
		t.Fatal("README.md does not say how the module is put in")
	}
	sums, err := os.ReadFile("go.sum") // so that the network is not needed
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	if err := os.Symlink(checkout, filepath.Join(top, "cheap")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "program")
	for name, text := range map[string]string{
		"go.mod": "module example.com/program\n\ngo 1.26.0\n\nrequire github.com/apache/arrow-go/v18 v18.8.0\n",
		"go.sum": string(sums),
		"main.go": `package main

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cheapgo/cheap"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
)

func main() {
	heap, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		panic(err)
	}
	b := memory.NewResizableBuffer(cheaparrow.Allocator{Heap: heap})
	b.Resize(1000)
	fmt.Println(b.Len(), heap.Stats().Blocks)
	b.Release()
	fmt.Println(heap.Destroy())
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
		cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
		if out, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.TrimSpace(line), err, out)
		}
	}
	if got, want := string(out), "1000 1\n<nil>\n"; got != want {
		t.Errorf("the program printed %q, want %q", got, want)
	}
}
