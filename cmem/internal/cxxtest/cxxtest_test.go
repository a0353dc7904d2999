//go:build cgo && cxx && linux && !asan && !msan

package cxxtest_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/cmem"
	"github.com/cheapgo/cheap/cmem/internal/cxxtest"
	"github.com/cheapgo/cheap/cmem/internal/hammer"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

var long = flag.Duration("cmem.long", 0, "how long TestHammer runs; 0 is some thousand steps")

// few is what the runtime's threads and the C library allocate beside a test.
const few = 60

// TestOperators counts the calls of each operator, and their bytes, once.
func TestOperators(t *testing.T) {
	if off := cmem.Off(); off != "" {
		t.Fatal(off)
	}
	for _, rate := range []int{cmem.DefaultRate, 1, 0} {
		old := cmem.SetRate(rate)
		for _, k := range cxxtest.All() {
			const times, size = 5000, 100
			news, deletes := cxxtest.Called()
			before := cmem.ReadStats()
			if s := k.Pairs(times, size); s != "" {
				t.Errorf("rate %d, %s: %s", rate, k.Name, s)
			}
			after := cmem.ReadStats()
			mallocs, frees, bytes := after.Mallocs-before.Mallocs, after.Frees-before.Frees, after.Bytes-before.Bytes
			// The operators of the program have a mark in front of the block.
			if mallocs < times || mallocs > times+few || frees < times || frees > times+few || bytes < times*size || bytes > times*192+100_000 {
				t.Errorf("rate %d, %s: %d mallocs and %d frees, want %d; %d bytes, want %d", rate, k.Name, mallocs, frees, times, bytes, times*size)
			}
			if cxxtest.Replaced() {
				n, d := cxxtest.Called()
				if n-news != times || d-deletes != times {
					t.Errorf("rate %d, %s: the operators of the program were called %d and %d times, want %d", rate, k.Name, n-news, d-deletes, times)
				}
			}
		}
		cmem.SetRate(old)
	}
}

// TestOperatorsLive looks at what is in use between new and delete.
func TestOperatorsLive(t *testing.T) {
	old := cmem.SetRate(1)
	defer cmem.SetRate(old)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cxxtest.All()[0].Pairs(600, 1000) // the thread looks at the rate
	for _, k := range cxxtest.All() {
		const size, near = 3_000_000, 50_000
		before := cmem.ReadStats().Live
		p := k.Make(size)
		if n := cmem.ReadStats().Live - before; n < size-near || n > size+near {
			t.Errorf("%s: %d bytes are in use, want %d", k.Name, n, size)
		}
		k.Destroy(p, size)
		if n := cmem.ReadStats().Live - before; n < -near || n > near {
			t.Errorf("%s: %d bytes are in use after delete", k.Name, n)
		}
	}
}

// TestNewFails asks each operator for memory that there is not.
func TestNewFails(t *testing.T) {
	for _, k := range cxxtest.All() {
		before := cmem.ReadStats().Bytes
		if s := k.Fails(); s != "" {
			t.Errorf("%s: %s", k.Name, s)
		}
		if n := cmem.ReadStats().Bytes - before; n < 0 || n > 100_000 {
			t.Errorf("%s: %d bytes counted of a request that failed", k.Name, n)
		}
	}
}

// TestNewHandled has a handler that gives memory back: the request is repeated, and counted once.
func TestNewHandled(t *testing.T) {
	const size = 256 << 20
	if cxxtest.Replaced() {
		return // the operators of the program do not repeat it
	}
	for _, k := range cxxtest.All() {
		before := cmem.ReadStats()
		p, s := k.Handled(size)
		// A preloaded allocator keeps the addresses of a block that was freed.
		if s != "" && (p == nil || os.Getenv("CXXTEST_CHILD") == "") {
			t.Errorf("%s: %s", k.Name, s)
		}
		if p == nil {
			continue
		}
		k.Destroy(p, size)
		after := cmem.ReadStats()
		if n := after.Bytes - before.Bytes; n < size || n > size+size/2 {
			t.Errorf("%s: %d bytes, want %d", k.Name, n, size)
		}
		// A request that fails is a call.
		if m, f := after.Mallocs-before.Mallocs, after.Frees-before.Frees; f < 1 || m < 1 || m > 2+few || f > 1+few {
			t.Errorf("%s: %d mallocs and %d frees", k.Name, m, f)
		}
	}
}

// TestThrows has exceptions go through functions of C++ while each block is sampled.
func TestThrows(t *testing.T) {
	old := cmem.SetRate(1)
	defer cmem.SetRate(old)
	for depth := range 100 {
		if n := cxxtest.Throws(depth); n != depth+1 {
			t.Errorf("%d objects were destroyed, want %d", n, depth+1)
		}
	}
}

// TestHammer has exceptions, and each operator, among all other ways to allocate.
func TestHammer(t *testing.T) {
	kinds := cxxtest.All()
	hammer.Run(t, *long, func() {
		if depth := rand.IntN(50); cxxtest.Throws(depth) != depth+1 {
			t.Error("an object was not destroyed")
		}
		if s := kinds[rand.IntN(len(kinds))].Pairs(1+rand.IntN(20), rand.IntN(5000)); s != "" {
			t.Error(s)
		}
	})
}

// TestPreloaded runs the tests with allocators that are preloaded, which have operators of their
// own.
func TestPreloaded(t *testing.T) {
	if os.Getenv("CXXTEST_CHILD") != "" {
		return
	}
	for _, name := range []string{"libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4"} {
		t.Run(name, func(t *testing.T) {
			none := exec.Command("true")
			none.Env = []string{"LD_PRELOAD=" + name} // the dynamic linker complains of one that is not there
			if out, err := none.CombinedOutput(); err != nil || len(out) != 0 {
				t.Skip(name, "is not installed")
			}
			if out, err := child(name); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestLibrary runs the tests with a library that has operators of its own, which is to be called.
func TestLibrary(t *testing.T) {
	if os.Getenv("CXXTEST_CHILD") != "" {
		return
	}
	cxx, err := exec.Command("go", "env", "CXX").Output()
	testcall.Must(t, err)
	for _, arrays := range []string{"-UCXXTEST_ARRAYS", "-DCXXTEST_ARRAYS"} {
		library := filepath.Join(t.TempDir(), "library.so")
		args := append(strings.Fields(string(cxx)), "-std=c++17", "-shared", "-fPIC", arrays, "-o", library, "testdata/library.cc")
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := child(library)
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// child runs the tests in a program for which a library is preloaded.
func child(preload string) ([]byte, error) {
	cmd := exec.Command(os.Args[0], "-test.run=^Test(Operators|OperatorsLive|NewFails|NewHandled|Throws|Calls)$")
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+preload, "CXXTEST_CHILD="+filepath.Base(preload))
	return cmd.CombinedOutput()
}

// TestCalls reports whether the operators of the library were called, if there is one.
func TestCalls(t *testing.T) {
	if os.Getenv("CXXTEST_CHILD") != "library.so" || cxxtest.Replaced() {
		return
	}
	for _, k := range cxxtest.All() {
		before := cxxtest.LibraryCalled()
		k.Pairs(10, 100)
		if n := cxxtest.LibraryCalled() - before; n != 10 {
			t.Errorf("%s: the operator of the library was called %d times, want 10", k.Name, n)
		}
	}
}

// TestBuilds runs the tests in programs that have operators of their own, and in one that has
// libstdc++ linked statically.
func TestBuilds(t *testing.T) {
	if cxxtest.Replaced() || os.Getenv("CXXTEST_CHILD") != "" {
		return
	}
	for _, args := range [][]string{
		{"-tags=cxx,cxx_replaced"},
		{"-tags=cxx,cxx_replaced,cxx_arrays"},
		{"-tags=cxx", "-ldflags=-extldflags=-static-libstdc++"},
		// The unwinder linked statically is not hidden by a function of the package.
		{"-tags=cxx", "-run=TestThrows", "-ldflags=-extldflags=-static-libgcc"},
		{"-tags=cxx", "-run=TestThrows", "-ldflags=-linkmode=external -extldflags=-static"},
	} {
		cmd := exec.Command("go", append([]string{"test", "-count=1", "."}, args...)...)
		cmd.Env = append(os.Environ(), "CXXTEST_CHILD=build")
		if args[0] != "-tags=cxx" {
			cmd.Env = append(os.Environ(), "CXXTEST_CHILD=") // with other allocators, too
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}
