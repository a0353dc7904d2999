package workloads

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// constants returns the constants that files of Go declare, by name.
func constants(t *testing.T, sources map[string]string) map[string]constant.Value {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	for name, text := range sources {
		file, err := parser.ParseFile(set, name, text, 0)
		testcall.Must(t, err)
		files = append(files, file)
	}
	// What is imported is not needed.
	config := types.Config{Error: func(error) {}}
	pkg, _ := config.Check("workloads", set, files, nil)
	values := make(map[string]constant.Value)
	for _, name := range pkg.Scope().Names() {
		if c, ok := pkg.Scope().Lookup(name).(*types.Const); ok {
			values[name] = c.Val()
		}
	}
	return values
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	testcall.Must(t, err)
	return string(text)
}

// TestConstants compares the constants of native.h with those of Go. Some of them, as
// how long a thread of larson lives, show in no tally.
func TestConstants(t *testing.T) {
	enum := regexp.MustCompile(`(?m)^\t([a-z]\w*) = (.*),$`).FindAllStringSubmatch(readFile(t, "native.h"), -1)
	if len(enum) < 40 {
		t.Fatalf("native.h has %d constants", len(enum))
	}
	var text strings.Builder
	text.WriteString("package workloads\n")
	for _, c := range enum {
		text.WriteString("const " + c[1] + " = " + c[2] + "\n")
	}
	inC := constants(t, map[string]string{"native.h": text.String()})
	inGo := constants(t, map[string]string{"single.go": readFile(t, "single.go"), "threads.go": readFile(t, "threads.go")})
	for _, c := range enum {
		words := strings.Split(c[1], "_")
		for i := range words[1:] {
			words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
		}
		name := strings.Join(words, "")
		a, b := inC[c[1]], inGo[name]
		if b == nil || !constant.Compare(a, token.EQL, b) {
			t.Errorf("%s is %v in C, and %s is %v in Go", c[1], a, name, b)
		}
	}
}
