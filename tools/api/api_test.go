package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestAPI compares the exported API with the stored one.
func TestAPI(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return // cgo is for the machine that compiles
	}
	t.Chdir("..")
	var out strings.Builder
	if err := run(nil, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestPlantedRemoval takes a method out of package cheap, and adds a function: the comparison with the
// stored list finds both.
func TestPlantedRemoval(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return // as TestAPI
	}
	file, err := filepath.Abs(filepath.Join("..", "..", "default.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const removed = "\nfunc Calloc("
	if !strings.Contains(string(text), removed) {
		t.Fatalf("%s has no %s", file, removed)
	}
	changed := filepath.Join(t.TempDir(), "default.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), removed, "\nfunc Added(", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(name, overlay, 0o666); err != nil {
		t.Fatal(err)
	}
	now, err := list("../..", "-overlay="+name, ".")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	before := slices.DeleteFunc(strings.Split(string(stored), "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "pkg github.com/cheapgo/cheap, ")
	})
	var out strings.Builder
	err = compare(before, now, &out)
	const want = "gone, which breaks programs: pkg github.com/cheapgo/cheap, func Calloc(int, int) unsafe.Pointer\n" +
		"new: pkg github.com/cheapgo/cheap, func Added(int, int) unsafe.Pointer\n"
	if err == nil || out.String() != want {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestFeatures lists a small package that has one of each.
func TestFeatures(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/p\n\ngo 1.26.0\n",
		"p.go": `package p

import "io"

const C = 1 << 3

var V map[string]io.Reader

func F[T any, S ~[]T](s S, n ...int) (T, error) { panic(0) }

type Number interface{ ~int | ~string }

type I interface {
	io.Closer
	A(name string) int
	hidden()
}

type A = map[string]int

type E struct{}

func (*E) P()     {}
func (E) V(x int) {}

type S struct {
	E
	N      int
	hidden []int
}

type T int

type G[K comparable] struct{ M map[K]T }

func (g *G[K]) Get(k K) T { return g.M[k] }

type hidden struct{}

func (hidden) Out() {}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := list(dir, ".")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range got {
		got[i] = strings.TrimPrefix(line, "pkg example.com/p, ")
	}
	slices.Sort(got)
	want := []string{
		"const C untyped int = 8",
		"func F[T any, S ~[]T](S, ...int) (T, error)",
		"method (*E) P()",
		"method (*G) Get(K) T",
		"method (*S) P()",
		"method (E) V(int)",
		"method (S) V(int)",
		"type A = map[string]int",
		"type E struct, comparable",
		"type G[K comparable] struct",
		"type G[K comparable] struct, M map[K]T",
		"type I interface { A(string) int; Close() error; unexported methods }",
		"type Number interface { ~int | ~string; comparable }",
		"type S struct",
		"type S struct, N int",
		"type S struct, embedded E E",
		"type T int",
		"var V map[string]io.Reader",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the list is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
