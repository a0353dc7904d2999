package cheaptest_test

import (
	"flag"
	"fmt"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/cheaptest"
)

// counted is an allocator of a program: a heap that counts calls of Malloc. It is for
// one goroutine at a time.
type counted struct {
	*cheap.Heap
	mallocs int
}

func (c *counted) Malloc(size int) unsafe.Pointer {
	c.mallocs++
	return c.Heap.Malloc(size)
}

// A program tests an allocator of its own. A function as TestConformance, in a file whose
// name ends with _test.go, is all it needs.
func Example() {
	TestConformance := func(t *testing.T) {
		newAllocator := func(t testing.TB) (cheap.Allocator, func() error) {
			heap, err := cheap.NewHeap(cheap.HeapOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return &counted{Heap: heap}, heap.Destroy
		}
		cheaptest.TestAllocator(t, newAllocator, cheaptest.Guarantees{Reuses: true, CountsLive: true, Align: 16})
	}

	fmt.Println(passes(TestConformance))
	// Output: true
}

// passes runs a test here, where there is no T. With -v it would print more than the
// example may.
func passes(test func(*testing.T)) bool {
	verbose := flag.Lookup("test.v").Value.String()
	flag.Set("test.v", "false")
	defer flag.Set("test.v", verbose)
	all := func(pat, name string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: "TestConformance", F: test}})
}
