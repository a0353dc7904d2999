package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A listed is what go list prints of a package, as far as it matters here.
type listed struct {
	ImportPath, Name, Export string
}

// goList runs go list in a folder.
func goList(dir string, args ...string) (list []listed, err error) {
	c := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Export"}, args...)...)
	c.Dir = dir
	c.Env = append(c.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: go list: %w\n%s", dir, err, &stderr)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// list returns the API of the packages of a module that match a pattern: those that a program of
// another module may import. More arguments of go list may come first.
func list(dir string, args ...string) ([]string, error) {
	all, err := goList(dir, args...)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range all {
		if p.Name != "main" && !slices.Contains(strings.Split(p.ImportPath, "/"), "internal") {
			names = append(names, p.ImportPath)
		}
	}
	// The other packages of the module may need much more.
	args = slices.Concat([]string{"-export", "-deps"}, args[:len(args)-1], names)
	if all, err = goList(dir, args...); err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		name, ok := exports[path]
		if !ok || name == "" {
			return nil, fmt.Errorf("go list has no export data of %s", path)
		}
		return os.Open(name)
	})
	var lines []string
	for _, name := range names {
		p, err := imports.Import(name)
		if err != nil {
			return nil, err
		}
		lines = append(lines, features(p)...)
	}
	return lines, nil
}

// features returns the lines of a package.
func features(p *types.Package) []string {
	f := &feature{p: p}
	for _, name := range p.Scope().Names() {
		if obj := p.Scope().Lookup(name); obj.Exported() {
			f.object(obj)
		}
	}
	return f.lines
}

// A feature collects the lines of a package.
type feature struct {
	p     *types.Package
	lines []string
}

func (f *feature) add(format string, args ...any) {
	f.lines = append(f.lines, "pkg "+f.p.Path()+", "+fmt.Sprintf(format, args...))
}

// text writes a type. Types of the package stand without its name, others with the path of theirs.
func (f *feature) text(t types.Type) string { return types.TypeString(t, types.RelativeTo(f.p)) }

func (f *feature) object(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		f.add("const %s %s = %s", obj.Name(), f.text(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		f.add("var %s %s", obj.Name(), f.text(obj.Type()))
	case *types.Func:
		sig := obj.Signature()
		f.add("func %s%s%s", obj.Name(), f.parameters(sig.TypeParams()), f.signature(sig))
	case *types.TypeName:
		f.typeName(obj)
	}
}

// signature writes parameters and results by their types. Their names are no promise.
func (f *feature) signature(sig *types.Signature) string {
	unnamed := func(tuple *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range tuple.Variables() {
			vars = append(vars, types.NewParam(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	bare := types.NewSignatureType(nil, nil, nil, unnamed(sig.Params()), unnamed(sig.Results()), sig.Variadic())
	return strings.TrimPrefix(f.text(bare), "func")
}

// parameters writes type parameters, with their constraints.
func (f *feature) parameters(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var all []string
	for p := range list.TypeParams() {
		all = append(all, p.Obj().Name()+" "+f.text(p.Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func (f *feature) typeName(obj *types.TypeName) {
	name := obj.Name()
	if alias, ok := obj.Type().(*types.Alias); ok {
		f.add("type %s%s = %s", name, f.parameters(alias.TypeParams()), f.text(alias.Rhs()))
		return
	}
	named := obj.Type().(*types.Named)
	name += f.parameters(named.TypeParams())
	switch t := named.Underlying().(type) {
	case *types.Struct:
		// A program may use a type as the key of a map, or compare values.
		compared := ""
		if types.Comparable(t) {
			compared = ", comparable"
		}
		f.add("type %s struct%s", name, compared)
		for field := range t.Fields() {
			if field.Exported() {
				embedded := ""
				if field.Embedded() {
					embedded = "embedded "
				}
				f.add("type %s struct, %s%s %s", name, embedded, field.Name(), f.text(field.Type()))
			}
		}
	case *types.Interface:
		f.add("type %s interface %s", name, f.interfaceText(t))
		return // its methods are there
	default:
		f.add("type %s %s", name, f.text(t))
	}
	f.methods(named)
}

// interfaceText writes the methods of an interface, which others implement: one more breaks them. What
// is in a constraint follows.
func (f *feature) interfaceText(t *types.Interface) string {
	var parts []string
	hidden := false
	for m := range t.Methods() {
		if m.Exported() {
			parts = append(parts, m.Name()+f.signature(m.Signature()))
		} else {
			hidden = true
		}
	}
	slices.Sort(parts)
	if hidden {
		parts = append(parts, "unexported methods")
	}
	for e := range t.EmbeddedTypes() {
		if _, isInterface := e.Underlying().(*types.Interface); !isInterface {
			parts = append(parts, f.text(e))
		}
	}
	if t.IsComparable() {
		parts = append(parts, "comparable")
	}
	return "{ " + strings.Join(parts, "; ") + " }"
}

// methods writes the methods of a type, and those of the types that are embedded in it.
func (f *feature) methods(named *types.Named) {
	own := types.NewMethodSet(named)
	all := types.NewMethodSet(types.NewPointer(named))
	for i := range all.Len() {
		m := all.At(i).Obj().(*types.Func)
		if !m.Exported() {
			continue
		}
		receiver := named.Obj().Name()
		if own.Lookup(m.Pkg(), m.Name()) == nil {
			receiver = "*" + receiver
		}
		f.add("method (%s) %s%s", receiver, m.Name(), f.signature(all.At(i).Type().(*types.Signature)))
	}
}
