package heap

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
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

// TestLocalSections looks at the source of Local.Malloc and Local.Free: at their directives, and that from
// the load of the cache on they call nothing, except behind the section.
func TestLocalSections(t *testing.T) {
	// Of the language, of package unsafe, types, what the compiler makes instructions of; and what runs
	// behind the section.
	may := []string{"uintptr", "uint64", "Pointer", "Add", "Offsetof", "Block", "cacheClass", "LoadPointer", "raceAcquire", "StateOf", "allocSlow", "freeSlow"}
	f, err := parser.ParseFile(token.NewFileSet(), "local.go", nil, parser.ParseComments)
	testcall.Must(t, err)
	found := 0
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || fn.Name.Name != "Malloc" && fn.Name.Name != "Free" {
			continue
		}
		for _, want := range []string{"//go:nosplit", "//go:nocheckptr", "//go:noinline"} {
			if !slices.ContainsFunc(fn.Doc.List, func(c *ast.Comment) bool { return c.Text == want }) {
				t.Errorf("%s has no %s", fn.Name, want)
			}
		}
		begun := false
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := types.ExprString(call.Fun)
			name = strings.Trim(name[strings.LastIndexByte(name, '.')+1:], "(*)")
			begun = begun || name == "LoadPointer"
			if begun && !slices.Contains(may, name) {
				t.Errorf("%s calls %s", fn.Name, types.ExprString(call.Fun))
			}
			found++
			return true
		})
		if !begun {
			t.Errorf("%s does not load the cache", fn.Name)
		}
	}
	if found < 20 {
		t.Errorf("%d calls and conversions", found)
	}
}
