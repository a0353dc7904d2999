//go:build cgo

package loops

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// calls are the methods and functions that the loops measure.
var calls = map[string]bool{
	"Malloc": true, "Free": true, "FreeAll": true,
	"GetArena": true, "Put": true, "GetAlloc": true, "ReturnAlloc": true,
}

// written returns, for each function of a file, how many calls its source has.
// Functions without a name come in their order, the others by name.
func written(t *testing.T, file string) (literals []int, named map[string]int) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	testcall.Must(t, err)
	count := func(body ast.Node) (n int) {
		ast.Inspect(body, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && calls[sel.Sel.Name] {
					n++
				}
			}
			return true
		})
		return n
	}
	named = make(map[string]int)
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			literals = append(literals, count(node.Body))
			return false
		case *ast.FuncDecl:
			named[node.Name.Name] = count(node.Body)
			return false
		}
		return true
	})
	return literals, named
}

var (
	textLine = regexp.MustCompile(`(?m)^TEXT \S*/loops\.(\S+)\(SB\) (\S+)$`)
	callLine = regexp.MustCompile(`\bCALL\b`)
	ownLine  = regexp.MustCompile(`R_CALL\w*:runtime\.`) // of the runtime, not of an allocator
)

// TestCompiled reads the compiled loops. Each call of the source is there, or, if it
// was inlined, a call that it makes.
func TestCompiled(t *testing.T) {
	export, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", ".").Output()
	testcall.Must(t, err)
	code, err := exec.Command("go", "tool", "objdump", "-s", `/loops\.`, string(bytes.TrimSpace(export))).Output()
	testcall.Must(t, err)
	literals := make(map[string][]int) // by file, of each literal in its order
	named := make(map[string]int)
	heads := textLine.FindAllSubmatchIndex(code, -1)
	for i, head := range heads {
		end := len(code)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		n := 0
		for _, line := range strings.Split(string(code[head[1]:end]), "\n") {
			if callLine.MatchString(line) && !ownLine.MatchString(line) {
				n++
			}
		}
		name, file := string(code[head[2]:head[3]]), filepath.Base(string(code[head[4]:head[5]]))
		if literal, found := strings.CutPrefix(name, "init.func"); found && !strings.Contains(literal, ".") {
			literals[file] = append(literals[file], n)
		} else {
			named[name] = n
		}
	}
	for _, file := range []string{"original.go", "dropin.go", "rivals.go", "heap.go"} {
		wantLiterals, wantNamed := written(t, file)
		got := literals[file]
		if len(got) != len(wantLiterals) {
			t.Errorf("%s has %d functions without a name, compiled are %d", file, len(wantLiterals), len(got))
			continue
		}
		for i, want := range wantLiterals {
			if got[i] < want {
				t.Errorf("%s: loop %d has %d calls where the source has %d", file, i+1, got[i], want)
			}
		}
		for name, want := range wantNamed {
			if n, ok := named[name]; want > 0 && (!ok || n < want) {
				t.Errorf("%s: %s has %d calls where the source has %d", file, name, n, want)
			}
		}
	}
}
