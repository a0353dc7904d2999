package repotest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// forwardGuide is the document that says how a dependency of a program gets the
// drop-ins, which it imports by the paths of the originals.
const forwardGuide = "docs/porting.md"

// A forwarded package is one of the drop-ins, with a module that imports the original,
// and what a program that calls it prints.
type forwarded struct {
	name, dependency, prints string
	needsCgo                 bool
}

var forwardedPackages = []forwarded{
	{"cgoparam", `package dependency

import (
	"fmt"
	"unsafe"

	"github.com/CannibalVox/cgoparam"
)

// Print needs alignment to 16, which the original does not have.
func Print() {
	alloc := cgoparam.GetAlloc()
	defer cgoparam.ReturnAlloc(alloc)
	aligned := true
	for range 10 {
		aligned = aligned && uintptr(alloc.Malloc(1))%16 == 0
	}
	p := (*[5]byte)(alloc.CString("hello"))
	q := (*[5]byte)(alloc.CBytes(p[:]))
	fmt.Println(string(q[:]), aligned, describe(alloc))
}

func describe(alloc *cgoparam.Allocator) bool { return alloc.Malloc(0) != unsafe.Pointer(nil) }
`, "hello true true\n", false},
	{"cgoalloc", `package dependency

import (
	"fmt"
	"unsafe"

	"github.com/CannibalVox/cgoalloc"
)

// Print frees a block twice, which the original does not notice.
func Print() {
	var inner cgoalloc.Allocator = &cgoalloc.DefaultAllocator{}
	var blocks cgoalloc.FixedBlockAllocator
	blocks, err := cgoalloc.CreateFixedBlockAllocator(inner, 4096, 64, 8)
	if err != nil {
		panic(err)
	}
	var all *cgoalloc.FallbackAllocator = cgoalloc.CreateFallbackAllocator(blocks, inner)
	var arena *cgoalloc.ArenaAllocator = cgoalloc.CreateArenaAllocator(all)
	p := (*[5]byte)(unsafe.Pointer(cgoalloc.CString(arena, "hello")))
	q := (*[5]byte)(cgoalloc.CBytes(arena, p[:]))
	fmt.Println(string(q[:]))
	arena.FreeAll()
	defer func() { fmt.Println(recover() != nil) }()
	block := blocks.Malloc(64)
	blocks.Free(block)
	blocks.Free(block)
}
`, "hello\ntrue\n", true},
}

// TestForward does what the document says if a dependency imports an original: it makes
// the folder with the files that the document shows, runs its commands, and runs a
// program.
func TestForward(t *testing.T) {
	t.Parallel()
	doc := parseDocument(t, forwardGuide)
	text, mod, commands := read(t, forwardGuide), forwardMod(t, doc), ""
	for _, b := range doc.blocks {
		if b.lang == "sh" && strings.Contains(b.text, "/forward/") {
			commands += b.text
		}
	}
	cgo := goEnv(t, "CGO_ENABLED") == "1"
	for _, f := range forwardedPackages {
		if f.needsCgo && !cgo {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			if err := os.Symlink(root(t), filepath.Join(top, "cheap")); err != nil {
				t.Fatal(err)
			}
			original := "github.com/CannibalVox/" + f.name
			writeFiles(t, top, map[string]string{
				"dependency/go.mod":        "module example.com/dependency\n\ngo 1.22\n\nrequire " + original + " v1.1.0\n",
				"dependency/dependency.go": f.dependency,

				"hello/go.mod":  "module example.com/hello\n\ngo 1.22\n\nrequire example.com/dependency v0.0.0\n\nreplace example.com/dependency => ../dependency\n",
				"hello/main.go": "package main\n\nimport \"example.com/dependency\"\n\nfunc main() { dependency.Print() }\n",

				"hello/forward/" + f.name + "/go.mod":            strings.ReplaceAll(mod, "github.com/CannibalVox/cgoparam", original),
				"hello/forward/" + f.name + "/" + f.name + ".go": forwardFile(t, doc, f.name),
			})
			hello := filepath.Join(top, "hello")
			for line := range strings.Lines(commands) {
				if strings.Contains(line, "/CannibalVox/") && !strings.Contains(line, original) {
					continue // for the other package
				}
				if strings.HasPrefix(line, "go mod tidy") {
					continue // last
				}
				runLines(t, hello, line)
			}
			if got := runLines(t, hello, "go mod tidy\ngo run ."); got != f.prints {
				t.Errorf("the program prints %q, want %q", got, f.prints)
			}
			var m modFile
			goJSONAt(t, hello, &m, "mod", "edit", "-json")
			if !strings.Contains(text, "of this module, "+m.Go) {
				t.Errorf("the program's go.mod says go %s after go mod tidy, and %s does not", m.Go, forwardGuide)
			}
			for _, r := range m.Require {
				switch r.Path {
				case "example.com/dependency", original, modulePath:
				default:
					if required := r.Path + " " + r.Version; !strings.Contains(text, required) {
						t.Errorf("the program's go.mod requires %s, and %s does not say so", required, forwardGuide)
					}
				}
			}
		})
	}
}

// forwardMod returns the go.mod that a document shows.
func forwardMod(t *testing.T, doc document) string {
	t.Helper()
	for _, b := range doc.blocks {
		if b.lang == "text" && strings.HasPrefix(b.text, "module ") {
			return b.text
		}
	}
	t.Fatalf("%s shows no go.mod", doc.name)
	return ""
}

// forwardFile returns the Go file of a package that a document shows.
func forwardFile(t *testing.T, doc document, pkg string) string {
	t.Helper()
	for _, b := range doc.blocks {
		if isWholeFile(b) && strings.HasPrefix(b.text, "package "+pkg+"\n") {
			return b.text
		}
	}
	t.Fatalf("%s shows no package %s", doc.name, pkg)
	return ""
}

// writeFiles writes files, whose names have slashes, below a folder.
func writeFiles(t *testing.T, top string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		name = filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
