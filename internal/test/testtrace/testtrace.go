// Package testtrace lists the calls that a program makes, in their order, without a
// debugger: it builds the program from changed sources, in which each function first
// records that it was called, and by whom.
//
// Only tests import it.
package testtrace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/cheapgo/cheap"

// A Call is one call of a function: the function, its caller, and so on up to that with
// which the goroutine began. Names are those of the runtime, without the path of the
// module: own/internal/batch.(*Batch).Seal.
type Call []string

// Crosses reports whether the function and its caller are in different packages of the
// module.
func (c Call) Crosses() bool {
	return len(c) > 1 && Package(c[1]) != Package(c[0]) && Package(c[1]) != "runtime"
}

// Package returns the package of a function.
func Package(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	pkg, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + pkg
}

// Run builds a program and runs it. source is a file of package main, which may import the
// packages of the module. It calls record.Begin and record.End of the package
// internal/test/testtrace/record, which is there in the program alone. Run returns the calls
// between the two, of functions of the packages of the module that the program imports,
// directly or not. Functions that must not be split from their callers (go:nosplit) are not
// among them, nor is what has no name.
func Run(t testing.TB, source string) []Call {
	t.Helper()
	root, err := filepath.Abs(strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Dir}}", module)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	main := filepath.Join(dir, "main.go")
	if err := os.WriteFile(main, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(root, "internal", "test", "testtrace")
	replace := map[string]string{
		filepath.Join(here, "program", "main.go"):  main,
		filepath.Join(here, "record", "record.go"): filepath.Join(here, "testdata", "record", "record.go"),
	}
	overlay := filepath.Join(dir, "overlay.json")
	write := func() {
		text, err := json.Marshal(map[string]any{"Replace": replace})
		if err == nil {
			err = os.WriteFile(overlay, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write()
	list := output(t, "go", "list", "-overlay="+overlay, "-deps", "-f", "{{with .Module}}{{.Path}} {{end}}{{.Dir}}", module+"/internal/test/testtrace/program")
	for line := range strings.Lines(list) {
		of, pkg, _ := strings.Cut(strings.TrimSpace(line), " ")
		if of != module || strings.HasPrefix(pkg, here) {
			continue
		}
		for file, text := range changed(t, pkg) {
			to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
			if err := os.WriteFile(to, text, 0o600); err != nil {
				t.Fatal(err)
			}
			replace[file] = to
		}
	}
	write()
	program := filepath.Join(dir, "program")
	output(t, "go", "build", "-overlay="+overlay, "-o", program, module+"/internal/test/testtrace/program")
	var calls []Call
	for line := range strings.Lines(output(t, program)) {
		if names, ok := strings.CutPrefix(line, "call "); ok {
			calls = append(calls, strings.Fields(strings.ReplaceAll(names, module+"/", "")))
		}
	}
	return calls
}

func output(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, &stderr)
	}
	return string(out)
}

// changed returns the changed sources of the package in a directory, by file.
func changed(t testing.TB, dir string) map[string][]byte {
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range p.GoFiles {
		name = filepath.Join(dir, name)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		at := 0
		insert := func(pos token.Pos, s string) {
			next := set.Position(pos).Offset
			out.Write(text[at:next])
			out.WriteString(s)
			at = next
		}
		insert(file.Name.End(), `; import testtraceRecord "`+module+`/internal/test/testtrace/record"`)
		n := 0
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || f.Name.Name == "init" || f.Name.Name == "_" || nosplit(f) {
				continue
			}
			insert(f.Body.Lbrace+1, "testtraceRecord.Enter(); ")
			n++
		}
		out.Write(text[at:])
		if n > 0 {
			files[name] = out.Bytes()
		}
	}
	return files
}

func nosplit(f *ast.FuncDecl) bool {
	if f.Doc != nil {
		for _, c := range f.Doc.List {
			if strings.HasPrefix(c.Text, "//go:nosplit") {
				return true
			}
		}
	}
	return false
}
