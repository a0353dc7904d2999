//go:build cgo

package bench

import (
	"testing"

	"github.com/cheapgo/cheap/lab/internal/loops"
)

// theSeven are the benchmarks of cgoalloc v1.2.1, under the names that they
// have there.
var theSeven = []struct {
	name string
	n    int // operations in a round of a comparison
}{
	{"DefaultTemporaryData", 50_000},
	{"FBATemporaryData", 200_000},
	{"ArenaTemporaryData", 100_000},
	{"DefaultGrowShrink", 50_000},
	{"FBAGrowShrink", 500_000},
	{"MultilayerTemporaryData", 100_000},
	{"MultilayerGrowShrink", 500_000},
}

// cgoallocRows compares the drop-in with the original.
func cgoallocRows() []row {
	bind := func(do func(n int) error) contender {
		return func(tb testing.TB) work {
			return func(n int) {
				if err := do(n); err != nil {
					tb.Error(err)
				}
			}
		}
	}
	var all []row
	for _, s := range theSeven {
		all = append(all, row{s.name + "/allocator=dropin", "cgoalloc",
			paired(s.n, bind(loops.Dropin[s.name]), bind(loops.Original[s.name]))})
	}
	return all
}

// BenchmarkCgoalloc runs the seven on the original and through the drop-in.
func BenchmarkCgoalloc(b *testing.B) {
	for _, s := range theSeven {
		for _, p := range []struct {
			name string
			do   func(n int) error
		}{
			{"original", loops.Original[s.name]},
			{"dropin", loops.Dropin[s.name]},
		} {
			b.Run("work="+s.name+"/package="+p.name, func(b *testing.B) {
				if err := p.do(b.N); err != nil {
					b.Error(err)
				}
			})
		}
	}
}
