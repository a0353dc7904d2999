package heap

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

// spin counts in a function that, as Local.Malloc and Local.Free, has no place where the goroutine
// may be stopped. Meanwhile inside is 1, and 2 after that. At the end it sets in. It reports whether
// after was set meanwhile.
//
//go:norace
//go:nosplit
//go:nocheckptr
//go:noinline
func spin(inside, after *uint32, in *bool, n int) (stopped bool) {
	*inside = 1
	for range n {
		if *after != 0 {
			stopped = true
			break
		}
	}
	*in = true
	*inside = 2
	return stopped
}

//go:norace
func set(p *uint32) { *p = 1 }

//go:norace
func get(p *uint32) uint32 { return *p }

// TestNosplitIsNotStopped is what the caches of Locals rely on: percpu.Stop does not return while a
// goroutine is in a function that is marked go:nosplit. And seizeLocals does not look at Local.in
// before that: the goroutine may have loaded the cache, and the store of in not be visible yet.
func TestNosplitIsNotStopped(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	testheap.SetDecay(t, -1)
	l := NewHeap(t, Options{}).NewLocal()
	met := 0
	for range 20 {
		useLocal(l)
		inside, after := new(uint32), new(uint32)
		stopped := make(chan bool)
		go func() { stopped <- spin(inside, after, &l.in, 30_000_000) }()
		for get(inside) == 0 { // it may be 2 before this goroutine looks
			runtime.Gosched()
		}
		wasInside := get(inside) == 1
		seizeLocals(only(l.h), anyLocal)
		set(after)
		if <-stopped {
			t.Fatal("the world was stopped while a goroutine was in a function without safe points")
		}
		if !l.c.has() {
			t.Fatal("the Local has lost its cache while its goroutine was in it")
		}
		if wasInside {
			met++
		}
	}
	if met == 0 {
		t.Error("no goroutine was inside")
	}
}

// TestLocalSections looks at the source of Local.Malloc and Local.Free. The functions that they call
// from the load of the cache on, and that these call, are marked go:nosplit, so that none of them
// has a safe point where the compiler does not inline it.
func TestLocalSections(t *testing.T) {
	const nosplit, nocheckptr, noinline = "//go:nosplit", "//go:nocheckptr", "//go:noinline"
	needs := map[string][]string{ // by type and name
		"Local.Malloc":    {nosplit, nocheckptr, noinline},
		"Local.Free":      {nosplit, nocheckptr, noinline},
		"Local.cache":     {nosplit, nocheckptr},
		"cache.at":        {nosplit, nocheckptr},
		".At":             {nosplit, nocheckptr},
		".Pointer":        {nosplit, nocheckptr}, // of package osmem
		".Checksum":       {nosplit},
		".NextOf":         {nosplit},
		"Block.IsFree":    {nosplit},
		"Block.SetCached": {nosplit},
		"cacheClass.push": {nosplit},
	}
	// What runs behind the section; conversions; and what has no safe point.
	others := []string{"allocSlow", "freeSlow", "raceAcquire", "StateOf", "LoadPointer", "uintptr", "uint64", "Add", "cacheClass", "Offsetof"}
	found := 0
	for _, dir := range []string{".", "block", "../mem/osmem"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		testcall.Must(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			testcall.Must(t, err)
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				key := receiver(fn) + "." + fn.Name.Name
				want, ok := needs[key]
				home := "."
				switch key {
				case ".Pointer":
					home = "../mem/osmem"
				case ".At", ".Checksum", ".NextOf", "Block.IsFree", "Block.SetCached":
					home = "block"
				}
				if !ok || dir != home {
					continue
				}
				found++
				for _, w := range want {
					if fn.Doc == nil || !slices.ContainsFunc(fn.Doc.List, func(c *ast.Comment) bool { return c.Text == w }) {
						t.Errorf("%s has no %s", key, w)
					}
				}
				for _, called := range callsFrom(fn) {
					known := slices.Contains(others, called)
					for k := range needs {
						known = known || strings.HasSuffix(k, "."+called)
					}
					if !known {
						t.Errorf("%s calls %s, which is not known to have no safe point", key, called)
					}
				}
			}
		}
	}
	if found != len(needs) {
		t.Errorf("%d functions were found, want %d", found, len(needs))
	}
}

// receiver returns the name of the type of a method, or "".
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, _ := typ.(*ast.Ident)
	if id == nil {
		return "?"
	}
	return id.Name
}

// callsFrom returns the names of what fn calls, from a call of cache on if there is one.
func callsFrom(fn *ast.FuncDecl) (names []string) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := ""
		switch f := call.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			ast.Inspect(f.X, func(n ast.Node) bool { // in x.cache().at(c), cache comes first
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "cache" {
					names = nil
				}
				return true
			})
			name = f.Sel.Name
		}
		if name == "cache" {
			names = nil
		}
		if name != "" {
			names = append(names, name)
		}
		return true
	})
	return names
}
