package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A layer is files that take the place of a module's: from a path in the module to a file here.
type layer map[string]string

// patch applies a diff to copies of files, as they are in files or in the module.
func (c *checkout) patch(ctx context.Context, dir, diff string, files layer) error {
	text, err := os.ReadFile(diff)
	if err != nil {
		return err
	}
	to, err := os.MkdirTemp(c.root, "patched-")
	if err != nil {
		return err
	}
	for _, m := range regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`).FindAllSubmatch(text, -1) {
		name := string(m[1])
		from := filepath.Join(dir, name)
		if mine, ok := files[name]; ok {
			from = mine // of a diff before
		}
		source, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o777)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), source, 0o666)
		}
		if err != nil {
			return err
		}
		files[name] = filepath.Join(to, name)
	}
	_, err = c.output(c.command(ctx, to, []string{"GIT_CEILING_DIRECTORIES=" + c.root}, "git", "apply", "--unidiff-zero", diff))
	return err
}

// rewriteAll changes the files of a module's folder that a pattern matches, as they are in files or in
// the module. The pattern *.go leaves out the tests.
func (c *checkout) rewriteAll(dir, pattern string, files layer, rewrite func([]byte) ([]byte, error)) error {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return err
	}
	to, err := os.MkdirTemp(c.root, "rewritten-")
	if err != nil {
		return err
	}
	for _, name := range names {
		rel := filepath.Base(name)
		if pattern == "*.go" && strings.HasSuffix(rel, "_test.go") {
			continue
		}
		if mine, ok := files[rel]; ok {
			name = mine
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text, err := rewrite(source)
		if err != nil {
			return fmt.Errorf("%s: %w", rel, err)
		}
		if bytes.Equal(text, source) {
			continue
		}
		files[rel] = filepath.Join(to, rel)
		if err := os.WriteFile(files[rel], text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// keepAlive puts
//
//	defer runtime.KeepAlive(x)
//
// at the begin of each function that calls C, for its receiver and each parameter that is a pointer to
// one of the types. Without it the collector may find x unreachable while C works on what x owns.
func keepAlive(source []byte, types []string) ([]byte, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	done := 0
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || !callsC(fn.Body) {
			continue
		}
		fields := slices.Clone(fn.Type.Params.List)
		if fn.Recv != nil {
			fields = append(slices.Clone(fn.Recv.List), fields...)
		}
		begin := set.Position(fn.Body.Lbrace).Offset + 1
		out.Write(source[done:begin])
		done = begin
		for _, field := range fields {
			star, _ := field.Type.(*ast.StarExpr)
			if star == nil {
				continue
			}
			if name, ok := star.X.(*ast.Ident); !ok || !slices.Contains(types, name.Name) {
				continue
			}
			for _, name := range field.Names {
				fmt.Fprintf(&out, "\n\tdefer runtime.KeepAlive(%s)", name.Name)
			}
		}
		if done < len(source) && source[done] != '\n' {
			out.WriteByte('\n') // the body is on the same line
		}
	}
	if !bytes.Contains(out.Bytes(), []byte("runtime.KeepAlive(")) {
		return source, nil
	}
	out.Write(source[done:])
	return format.Source(bytes.Replace(out.Bytes(), []byte("import \"C\"\n"), []byte("import \"C\"\nimport \"runtime\"\n"), 1))
}

// callsC reports whether a function has a name of C in it.
func callsC(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "C" {
				found = true
			}
		}
		return !found
	})
	return found
}

var closing = regexp.MustCompile(`(?m)^(\s*)(?:defer )?(\w+)\.Close\(\)$`)

// forget takes each call of Close out of a test.
func forget(source []byte) ([]byte, error) {
	return closing.ReplaceAll(source, []byte("${1}_ = $2")), nil
}
