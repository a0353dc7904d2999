// Package corpus measures how many mistakes the analyzers find: in a package without the mistake
// it deletes one statement that releases or keeps something, and looks whether there is a finding
// that was not there before.
package corpus

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/cheapgo/cheap/vet/internal/load"
	"github.com/cheapgo/cheap/vet/internal/source"
)

// A StatementKind says which statements are deleted.
type StatementKind string

// The kinds.
const (
	Free      StatementKind = "C.free"
	KeepAlive StatementKind = "runtime.KeepAlive"
	Method    StatementKind = "defer x.Free"
)

// A Finding is what an analyzer has reported.
type Finding struct {
	Analyzer, Category, File string
	Line                     int
	Message                  string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Analyzer, f.Message)
}

// A Mutation is one deletion, and whether an analyzer has found that something is missing.
type Mutation struct {
	Kind  StatementKind
	File  string
	Line  int
	Text  string
	Found bool

	// Needed is false if the program is correct without the statement: nothing has a finalizer
	// that could run too early, or something has one that runs in place of the method.
	Needed bool
}

// A Module is a module that was analyzed.
type Module struct {
	Dir   string
	roots []*packages.Package
	facts map[*packages.Package]map[*analysis.Analyzer][]analysis.ObjectFact

	finalized map[string]bool // types with finalizers or cleanups, made by findFinalized

	Findings []Finding
}

// Open loads and analyzes the packages of a module, test files included.
func Open(dir string, analyzers []*analysis.Analyzer, tags string) (*Module, error) {
	roots, broken, err := load.Load(load.Config{Dir: dir, Tests: true, Tags: tags, Env: []string{"GOFLAGS=-mod=mod", "GOWORK=off"}}, "./...")
	if err == nil && len(broken) > 0 {
		err = broken[0]
	}
	if err != nil {
		return nil, err
	}
	m := &Module{Dir: dir, roots: roots, facts: map[*packages.Package]map[*analysis.Analyzer][]analysis.ObjectFact{}}
	graph, err := checker.Analyze(analyzers, roots, nil)
	if err != nil {
		return nil, err
	}
	seen := map[Finding]bool{}
	for act := range graph.All() {
		if act.Err != nil {
			return nil, fmt.Errorf("%s: %w", act, act.Err)
		}
		if m.facts[act.Package] == nil {
			m.facts[act.Package] = map[*analysis.Analyzer][]analysis.ObjectFact{}
		}
		m.facts[act.Package][act.Analyzer] = act.AllObjectFacts()
		if !act.IsRoot {
			continue
		}
		for _, d := range act.Diagnostics {
			if f := m.finding(act.Package, act.Analyzer, d); !seen[f] {
				seen[f] = true
				m.Findings = append(m.Findings, f)
			}
		}
	}
	return m, nil
}

func (m *Module) finding(pkg *packages.Package, a *analysis.Analyzer, d analysis.Diagnostic) Finding {
	pos := pkg.Fset.Position(d.Pos)
	name := pos.Filename
	if rel, err := filepath.Rel(m.Dir, name); err == nil {
		name = rel
	}
	return Finding{a.Name, d.Category, name, pos.Line, d.Message}
}

// Mutate deletes each statement of a kind in turn, and runs the analyzer on the package. Statements
// in different functions are deleted together: what is reported in a function belongs to the
// statement in it. A C.free for which nothing was reported so is deleted again, alone, because it
// may be the one of a function that frees for others.
func (m *Module) Mutate(kind StatementKind, a *analysis.Analyzer) ([]Mutation, error) {
	before := map[Finding]bool{}
	for _, f := range m.Findings {
		before[f] = true
	}
	m.findFinalized()
	var list []Mutation
	for _, pkg := range m.roots {
		for _, round := range m.rounds(pkg, kind) {
			texts := map[int][]byte{}
			for i := range round {
				if err := round[i].delete(pkg, texts); err != nil {
					return nil, err
				}
				if rel, err := filepath.Rel(m.Dir, round[i].File); err == nil {
					round[i].File = rel
				}
			}
			found, err := m.run(pkg, texts, a)
			if err != nil {
				return nil, err
			}
			for _, d := range round {
				for _, f := range found {
					// A deletion alone may be reported anywhere.
					alone := len(round) == 1 || f.File == d.File && d.from <= f.Line && f.Line <= d.to
					d.Found = d.Found || !before[f] && alone
				}
				if !d.Found && kind == Free && len(round) > 1 {
					texts := map[int][]byte{}
					d.File = pkg.Fset.File(pkg.Syntax[d.file].FileStart).Name()
					if err := d.delete(pkg, texts); err != nil {
						return nil, err
					}
					if d.File, err = filepath.Rel(m.Dir, d.File); err != nil {
						return nil, err
					}
					again, err := m.run(pkg, texts, a)
					if err != nil {
						return nil, err
					}
					for _, f := range again {
						d.Found = d.Found || !before[f]
					}
				}
				list = append(list, d.Mutation)
			}
		}
	}
	return list, nil
}

// A deletion is a Mutation with its place.
type deletion struct {
	Mutation
	stmt     ast.Stmt
	file     int // index in the syntax of the package
	from, to int // lines of the function
}

// delete puts spaces where the statement is.
func (d *deletion) delete(pkg *packages.Package, texts map[int][]byte) error {
	text := texts[d.file]
	if text == nil {
		var err error
		if text, err = os.ReadFile(d.File); err != nil {
			return err
		}
		texts[d.file] = text
	}
	from, to := pkg.Fset.Position(d.stmt.Pos()).Offset, pkg.Fset.Position(d.stmt.End()).Offset
	d.Text = string(text[from:to])
	for k := from; k < to; k++ {
		if text[k] != '\n' {
			text[k] = ' '
		}
	}
	return nil
}

// rounds returns the deletions of a kind in a package: in each round those that are done together.
func (m *Module) rounds(pkg *packages.Package, kind StatementKind) [][]deletion {
	var rounds [][]deletion
	for i, f := range pkg.Syntax {
		of := map[ast.Decl]int{}
		for _, s := range m.statements(pkg, f, kind) {
			var in ast.Decl
			for _, d := range f.Decls {
				if d.Pos() <= s.Pos() && s.Pos() < d.End() {
					in = d
				}
			}
			d := deletion{stmt: s, file: i, from: pkg.Fset.Position(in.Pos()).Line, to: pkg.Fset.Position(in.End()).Line}
			d.Mutation = Mutation{Kind: kind, File: pkg.Fset.File(f.FileStart).Name(), Line: pkg.Fset.Position(s.Pos()).Line, Needed: m.needed(pkg, s, kind)}
			n := of[in]
			of[in]++
			if n >= len(rounds) {
				rounds = append(rounds, nil)
			}
			rounds[n] = append(rounds[n], d)
		}
	}
	return rounds
}

// statements returns the statements of a kind in a file.
func (m *Module) statements(pkg *packages.Package, f *ast.File, kind StatementKind) []ast.Stmt {
	var list []ast.Stmt
	ast.Inspect(f, func(n ast.Node) bool {
		var call *ast.CallExpr
		s, ok := n.(ast.Stmt)
		switch n := n.(type) {
		case *ast.ExprStmt:
			call, _ = n.X.(*ast.CallExpr)
		case *ast.DeferStmt:
			call = n.Call
		}
		if !ok || call == nil {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, _ := sel.X.(*ast.Ident)
		switch kind {
		case Free:
			ok = id != nil && id.Name == "C" && sel.Sel.Name == "free"
		case KeepAlive:
			ok = id != nil && id.Name == "runtime" && sel.Sel.Name == "KeepAlive"
		case Method:
			_, deferred := n.(*ast.DeferStmt)
			ok = deferred && len(call.Args) == 0 && m.releases(pkg, sel)
		}
		if ok {
			list = append(list, s)
		}
		return true
	})
	return list
}

var releaseNames = map[string]bool{"Free": true, "Close": true, "Destroy": true, "Delete": true, "Release": true, "Dispose": true, "Drop": true}

// releases reports whether a method of the module whose name says that it releases something is
// called.
func (m *Module) releases(pkg *packages.Package, sel *ast.SelectorExpr) bool {
	f, _ := pkg.TypesInfo.Uses[sel.Sel].(*types.Func)
	if f == nil || !releaseNames[f.Name()] || f.Signature().Recv() == nil || f.Pkg() == nil {
		return false
	}
	for _, root := range m.roots {
		if strings.TrimSuffix(root.PkgPath, "_test") == f.Pkg().Path() {
			return true
		}
	}
	return false
}

// run analyzes a package in which other texts stand for some files.
func (m *Module) run(pkg *packages.Package, texts map[int][]byte, a *analysis.Analyzer) ([]Finding, error) {
	files := append([]*ast.File{}, pkg.Syntax...)
	for i, text := range texts {
		name := pkg.Fset.File(pkg.Syntax[i].FileStart).Name()
		f, err := parser.ParseFile(pkg.Fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files[i] = f
	}
	info := source.NewInfo()
	config := types.Config{FakeImportC: true, Sizes: pkg.TypesSizes, GoVersion: pkg.Types.GoVersion(), Error: func(error) {}, Importer: importerOf(pkg)}
	checked, _ := config.Check(pkg.PkgPath, pkg.Fset, files, info)

	var found []Finding
	results := map[*analysis.Analyzer]any{}
	var exec func(a *analysis.Analyzer) error
	exec = func(a *analysis.Analyzer) error {
		if _, done := results[a]; done {
			return nil
		}
		for _, req := range a.Requires {
			if err := exec(req); err != nil {
				return err
			}
		}
		imported := map[types.Object]map[reflect.Type]analysis.Fact{}
		var all []analysis.ObjectFact
		for _, dep := range pkg.Imports {
			for _, of := range m.facts[dep][a] {
				if imported[of.Object] == nil {
					imported[of.Object] = map[reflect.Type]analysis.Fact{}
				}
				imported[of.Object][reflect.TypeOf(of.Fact)] = of.Fact
				all = append(all, of)
			}
		}
		var err error
		results[a], err = a.Run(&analysis.Pass{
			Analyzer: a, Fset: pkg.Fset, Files: files, OtherFiles: pkg.OtherFiles, Pkg: checked, TypesInfo: info, TypesSizes: pkg.TypesSizes, ResultOf: results,
			Report:   func(d analysis.Diagnostic) { found = append(found, m.finding(pkg, a, d)) },
			ReadFile: os.ReadFile,
			ImportObjectFact: func(obj types.Object, fact analysis.Fact) bool {
				have := imported[obj][reflect.TypeOf(fact)]
				if have != nil {
					reflect.ValueOf(fact).Elem().Set(reflect.ValueOf(have).Elem())
				}
				return have != nil
			},
			ExportObjectFact:  func(types.Object, analysis.Fact) {},
			ImportPackageFact: func(*types.Package, analysis.Fact) bool { return false },
			ExportPackageFact: func(analysis.Fact) {},
			AllObjectFacts:    func() []analysis.ObjectFact { return all },
			AllPackageFacts:   func() []analysis.PackageFact { return nil },
		})
		return err
	}
	err := exec(a)
	return found, err
}

type importer map[string]*types.Package

func (m importer) Import(path string) (*types.Package, error) {
	if p := m[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

// importerOf gives a package what it has imported.
func importerOf(pkg *packages.Package) importer {
	m := importer{"unsafe": types.Unsafe}
	for path, dep := range pkg.Imports {
		path, _, _ = strings.Cut(path, " ") // of a test's variant
		m[path] = dep.Types
	}
	return m
}
