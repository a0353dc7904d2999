package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sqlitetest")
	if err != nil {
		panic(err)
	}
	builds.dir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestSameResults: each work has the same results with both memories, in this process,
// which may be instrumented, and in one with the original.
func TestSameResults(t *testing.T) {
	args := func(work string) []string {
		return []string{fmt.Sprint("-scale=", *scale), fmt.Sprint("-conns=", *conns), work}
	}
	for _, work := range []string{"single", "private", "shared", "api"} {
		t.Run(work, func(t *testing.T) {
			got := do(t, args(work)...)
			want, _ := child(t, original(t), args(work)...)
			if !got.Ours || want.Ours {
				t.Fatalf("the memory is ours: %t; of the original: %t", got.Ours, want.Ours)
			}
			if got.Digest != want.Digest {
				t.Errorf("the results are %s, with the original %s", got.Digest, want.Digest)
			}
		})
	}
}

// TestDigest: other rows give another digest.
func TestDigest(t *testing.T) {
	for _, work := range []string{"single", "private", "shared", "api"} {
		a, b := do(t, "-scale=5", "-conns=2", work), do(t, "-scale=7", "-conns=2", work)
		again := do(t, "-scale=5", "-conns=2", work)
		if a.Digest == b.Digest || a.Digest != again.Digest {
			t.Errorf("%s: %s, again %s, with other rows %s", work, a.Digest, again.Digest, b.Digest)
		}
	}
}

// TestCallocOfNothing: the slice form of Calloc faults for 0 bytes in modernc.org/memory
// v1.12.1, because it reads the usable size of the block at 0. Ours returns nil, as
// Malloc does. If this test fails, the original is corrected, and calloc0 can become a
// part of api.
func TestCallocOfNothing(t *testing.T) {
	if r := do(t, "calloc0"); r.Digest != "true <nil>" {
		t.Errorf("Calloc(0) returns nil, error: %s", r.Digest)
	}
	out, err := exec.CommandContext(t.Context(), original(t), "calloc0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nil pointer dereference") {
		t.Errorf("the original's Calloc(0) does not fault any more: %v\n%s", err, out)
	}
}

// TestAPI: the API is that of the original, name by name: functions with their types,
// and exported fields.
func TestAPI(t *testing.T) {
	want := exported(t, moduleDir(t, "original.mod"))
	got := exported(t, moduleDir(t, "go.mod"))
	if len(want) < 20 {
		t.Fatalf("the original has only %d names: %v", len(want), want)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s is %q, in the original %q", name, got[name], want[name])
		}
	}
	for name := range got {
		if want[name] == "" {
			t.Errorf("%s is not in the original", name)
		}
	}
}

// moduleDir returns the directory of modernc.org/memory under a go.mod.
func moduleDir(t *testing.T, modfile string) string {
	t.Helper()
	var m struct{ Dir string }
	if err := json.Unmarshal(goCommand(t, "list", "-m", "-json", "-modfile="+modfile, "modernc.org/memory"), &m); err != nil {
		t.Fatal(err)
	}
	return m.Dir
}

// exported returns the exported names of the package in dir, with the types of functions
// and fields, without the names of parameters and results.
func exported(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	add := func(name string, id *ast.Ident, typ ast.Expr) {
		if !id.IsExported() {
			return
		}
		if f, ok := typ.(*ast.FuncType); ok {
			unname(f.Params)
			unname(f.Results)
		}
		names[name+id.Name] = types.ExprString(typ)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				receiver := ""
				if decl.Recv != nil {
					receiver = types.ExprString(decl.Recv.List[0].Type) + "."
				}
				add(receiver, decl.Name, decl.Type)
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, id := range spec.Names {
							add("", id, &ast.Ident{Name: decl.Tok.String()})
						}
					case *ast.TypeSpec:
						s, ok := spec.Type.(*ast.StructType)
						if !ok {
							add("", spec.Name, spec.Type)
							continue
						}
						add("", spec.Name, &ast.Ident{Name: "struct"})
						for _, field := range s.Fields.List {
							for _, id := range field.Names {
								add(spec.Name.Name+".", id, field.Type)
							}
						}
					}
				}
			}
		}
	}
	return names
}

// unname removes the names from a list of parameters. Each parameter must have a type of
// its own, as all of package memory have.
func unname(list *ast.FieldList) {
	if list == nil {
		return
	}
	for _, f := range list.List {
		f.Names = nil
	}
}

// TestArguments: the command names the mistake in its arguments.
func TestArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"nothing"}, {"single", "api"}, {"-scale=0", "api"}, {"-conns=0", "shared"}, {"-unknown", "api"}} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), args, nil, &stdout, &stderr); code != 2 || stdout.Len() > 0 || stderr.Len() == 0 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, &stdout, &stderr)
		}
	}
}
