//go:build cgo

package bench

import (
	"os"
	"strings"
	"testing"
)

// theSeven are the benchmarks of cgoalloc v1.2.1, under the names that they
// have there.
var theSeven = []struct {
	name string
	n    int     // operations in a round of a comparison
	bar  float64 // the drop-in takes at most this much of the original's time
}{
	{"DefaultTemporaryData", 50_000, 1.05},
	{"FBATemporaryData", 200_000, 1 / 1.5},
	{"ArenaTemporaryData", 100_000, 1},
	{"DefaultGrowShrink", 50_000, 1.05},
	{"FBAGrowShrink", 500_000, 1 / 1.5},
	{"MultilayerTemporaryData", 100_000, 1},
	{"MultilayerGrowShrink", 500_000, 1 / 1.5},
}

// done destroys an allocator that should have no live block.
func done(tb testing.TB, alloc interface{ Destroy() error }) {
	if err := alloc.Destroy(); err != nil {
		tb.Error(err)
	}
}

// cgoallocRows compares the drop-in with the original.
func cgoallocRows() []row {
	bind := func(do func(testing.TB, int)) contender {
		return func(tb testing.TB) work {
			return func(n int) { do(tb, n) }
		}
	}
	var all []row
	for _, s := range theSeven {
		all = append(all, row{s.name + "/allocator=dropin", "cgoalloc", s.bar,
			paired(s.n, bind(dropinWorks[s.name]), bind(originalWorks[s.name]))})
	}
	return all
}

// BenchmarkCgoalloc runs the seven on the original and through the drop-in.
func BenchmarkCgoalloc(b *testing.B) {
	for _, s := range theSeven {
		b.Run("work="+s.name+"/package=original", func(b *testing.B) { originalWorks[s.name](b, b.N) })
		b.Run("work="+s.name+"/package=dropin", func(b *testing.B) { dropinWorks[s.name](b, b.N) })
	}
}

// TestSameWork sees that the drop-in is given what the original is given.
func TestSameWork(t *testing.T) {
	body := func(file, path string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), `"`+path+`"`) {
			t.Errorf("%s does not import %s", file, path)
		}
		_, body, ok := strings.Cut(string(text), "map[string]func(testing.TB, int){\n")
		if !ok {
			t.Fatalf("%s has no map of works", file)
		}
		return body
	}
	original := body("cgoalloc_original_test.go", "github.com/CannibalVox/cgoalloc")
	dropin := body("cgoalloc_dropin_test.go", "github.com/cheapgo/cheap/cgoalloc")
	if original != dropin {
		t.Error("cgoalloc_original_test.go and cgoalloc_dropin_test.go differ in more than the import")
	}
	for _, s := range theSeven {
		if originalWorks[s.name] == nil || dropinWorks[s.name] == nil {
			t.Errorf("there is no work %s", s.name)
		}
	}
}
