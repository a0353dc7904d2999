package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// A source is what the compiler reads.
type source struct {
	dir        string   // of the package
	pkg        string   // its name
	constraint string   // of the file: an expression of build tags
	preamble   string   // C code
	flags      []string // for the compiler
	system     system   // for which it compiles
}

// readSource reads the Go file, or makes a preamble of the header.
func (j *job) readSource() (*source, error) {
	s := &source{dir: filepath.Dir(j.out), pkg: j.pkg, constraint: "cgo", system: newSystem()}
	var directives []string
	if j.include != "" {
		name := j.include
		if !strings.HasPrefix(name, "<") && !strings.HasPrefix(name, `"`) {
			name = "<" + name + ">"
			if _, err := os.Stat(filepath.Join(s.dir, j.include)); err == nil {
				name = strconv.Quote(j.include)
			}
		}
		s.preamble = "#include " + name + "\n"
		directives = j.cgo
	} else {
		var err error
		if directives, err = s.parse(j.from); err != nil {
			return nil, err
		}
	}
	if j.pkg != "" {
		s.pkg = j.pkg
	}
	if s.pkg == "" {
		return nil, fmt.Errorf("give -package, or run it by go generate")
	}
	for _, d := range directives {
		if err := s.directive(d); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// parse reads the preamble of a Go file, and returns the #cgo lines of the files of its
// package, which are true of all of them.
func (s *source) parse(name string) (directives []string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	s.dir, s.pkg = filepath.Dir(name), f.Name.Name
	for line := range strings.Lines(string(text)) {
		if expr, err := constraint.Parse(line); err == nil && constraint.IsGoBuild(line) {
			s.constraint = strings.TrimSpace(strings.TrimPrefix(line, "//go:build"))
			s.system.assume(expr)
			break
		}
	}
	preamble, ok := preambleOf(f)
	if !ok {
		return nil, fmt.Errorf("%s does not import \"C\"", name)
	}
	s.preamble, directives = split(preamble)
	others, err := filepath.Glob(filepath.Join(s.dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		if filepath.Base(other) == filepath.Base(name) || strings.HasSuffix(other, "_test.go") || !s.system.builds(other) {
			continue
		}
		if f, err := parser.ParseFile(token.NewFileSet(), other, nil, parser.ParseComments|parser.ImportsOnly); err == nil {
			if preamble, ok := preambleOf(f); ok {
				_, more := split(preamble)
				directives = append(directives, more...)
			}
		}
	}
	return directives, nil
}

// preambleOf returns the C code before import "C".
func preambleOf(f *ast.File) (text string, found bool) {
	for _, decl := range f.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range d.Specs {
			if i, ok := spec.(*ast.ImportSpec); ok && i.Path.Value == `"C"` {
				doc := i.Doc
				if doc == nil && len(d.Specs) == 1 {
					doc = d.Doc
				}
				return rawText(doc), true
			}
		}
	}
	return "", false
}

// rawText is the text of a comment without its markers. CommentGroup.Text leaves out lines
// that look like directives.
func rawText(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	var b strings.Builder
	for _, c := range doc.List {
		if text, ok := strings.CutPrefix(c.Text, "//"); ok {
			b.WriteString(strings.TrimPrefix(text, " "))
		} else {
			b.WriteString(strings.Trim(c.Text[2:len(c.Text)-2], "\n"))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// split returns C code without its #cgo lines, and what is behind #cgo in these.
func split(preamble string) (code string, directives []string) {
	var b strings.Builder
	for line := range strings.Lines(preamble) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#cgo"); ok {
			directives = append(directives, strings.TrimSpace(rest))
			continue
		}
		b.WriteString(line)
	}
	return strings.TrimSpace(b.String()) + "\n", directives
}

// reason returns what a command has said, or else its error.
func reason(err error) string {
	if e, ok := err.(*exec.ExitError); ok && len(e.Stderr) > 0 {
		return strings.TrimSpace(string(e.Stderr))
	}
	return err.Error()
}

// importPath returns the import path of the package in a folder, or name if there is none. go
// list has none for a folder that has no Go file yet.
func importPath(dir, name string) string {
	list := func(args ...string) string {
		cmd := exec.Command("go", append([]string{"list"}, args...)...)
		cmd.Dir = dir
		if args[0] == "-m" {
			cmd.Env = append(os.Environ(), "GOWORK=off") // the module of the folder, not all
		}
		out, _ := cmd.Output()
		return strings.TrimSpace(string(out))
	}
	if path := list("-e", "-f", "{{.ImportPath}}", "."); path != "" && path != "." {
		return path
	}
	module, root, ok := strings.Cut(list("-m", "-f", "{{.Path}}\n{{.Dir}}"), "\n")
	if dir, err := filepath.Abs(dir); ok && err == nil {
		if rel, err := filepath.Rel(root, dir); err == nil {
			return path.Join(module, filepath.ToSlash(rel))
		}
	}
	return name
}
