package repotest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// dropInGuide is the document that says how a program gets the drop-in, under its own path or under that
// of the original.
const dropInGuide = "docs/porting.md"

// The paths of cgoalloc and of the drop-in, and a package that imports the original.
const (
	original   = "github.com/CannibalVox/cgoalloc"
	dropIn     = modulePath + "/x/cgoalloc"
	dependency = `package dependency

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
`
)

// TestDropIns runs the commands of the document, and a program. Either the program imports the
// drop-in, or a module that it requires imports the original.
func TestDropIns(t *testing.T) {
	t.Parallel()
	if goEnv(t, "CGO_ENABLED") != "1" {
		return
	}
	t.Run("import", func(t *testing.T) {
		t.Parallel()
		runDropIn(t, "-require="+dropIn+"@", map[string]string{
			"hello/go.mod":                   "module example.com/hello\n\ngo 1.22\n",
			"hello/main.go":                  "package main\n\nimport \"example.com/hello/dependency\"\n\nfunc main() { dependency.Print() }\n",
			"hello/dependency/dependency.go": strings.ReplaceAll(dependency, original, dropIn),
		})
	})
	t.Run("replace", func(t *testing.T) {
		t.Parallel()
		runDropIn(t, "-replace="+original+"=", map[string]string{
			"dependency/go.mod":        "module example.com/dependency\n\ngo 1.22\n\nrequire " + original + " v1.1.0\n",
			"dependency/dependency.go": dependency,

			"hello/go.mod":  "module example.com/hello\n\ngo 1.22\n\nrequire example.com/dependency v0.0.0\n\nreplace example.com/dependency => ../dependency\n",
			"hello/main.go": "package main\n\nimport \"example.com/dependency\"\n\nfunc main() { dependency.Print() }\n",
		})
	})
}

// runDropIn runs the program in the folder hello after the commands of the document that contain a flag.
func runDropIn(t *testing.T, flag string, texts map[string]string) {
	t.Helper()
	top := t.TempDir()
	testcall.Must(t, os.Symlink(root(t), filepath.Join(top, "cheap")))
	writeFiles(t, top, texts)
	hello := filepath.Join(top, "hello")
	commands := ""
	for _, b := range parseDocument(t, dropInGuide).blocks {
		if b.lang == "sh" && strings.Contains(b.text, flag) {
			commands += b.text
		}
	}
	if commands == "" {
		t.Fatalf("%s has no commands with %s", dropInGuide, flag)
	}
	runLines(t, hello, commands)
	if got := runLines(t, hello, "go run ."); got != "hello\ntrue\n" {
		t.Errorf("the program prints %q", got)
	}
	text := read(t, dropInGuide)
	var m modFile
	goJSONAt(t, hello, &m, "mod", "edit", "-json")
	if !strings.Contains(text, "of this module, "+m.Go) {
		t.Errorf("the program's go.mod says go %s after go mod tidy, and %s does not", m.Go, dropInGuide)
	}
	for _, r := range m.Require {
		switch r.Path {
		case "example.com/dependency", original, modulePath, dropIn:
		default:
			if required := r.Path + " " + r.Version; !strings.Contains(text, required) {
				t.Errorf("the program's go.mod requires %s, and %s does not say so", required, dropInGuide)
			}
		}
	}
}

// writeFiles writes files, whose names have slashes, below a folder.
func writeFiles(t *testing.T, top string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		name = filepath.Join(top, filepath.FromSlash(name))
		testcall.Must(t, os.MkdirAll(filepath.Dir(name), 0o777))
		testcall.Must(t, os.WriteFile(name, []byte(text), 0o666))
	}
}
