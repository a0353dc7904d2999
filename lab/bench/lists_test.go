//go:build cgo && unix

package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/internal/cside"
)

// listRows are the ratios of lists of calls.
func listRows() []row {
	const n = 64_000
	ratio := func(work string, list, plain contender) row {
		return row{"calls/" + work, "cgo", paired(n, list, plain)}
	}
	return []row{
		ratio("list=64", lists(64, addsPlain), cgoAdds),
		ratio("list=64,reference", lists(64, addsReferring), cgoAdds),
		ratio("list=64,condition", lists(64, addsChecked), cgoAdds),
		ratio("list=1", single, cgoAdds),
		ratio("list=5", lists(5, addsPlain), cgoAdds),
		ratio("list=64,mix", lists(64, mixes), cgoMixes),
	}
}

func cgoAdds(testing.TB) work {
	return func(n int) {
		sum := int32(0)
		for range n {
			sum = cside.Add(sum, 1)
		}
	}
}

func cgoMixes(testing.TB) work {
	return func(n int) {
		for range n {
			cside.Mix(1, 2, 3, 4, 5, 6, 7, 8)
		}
	}
}

// lists records size calls at a time and runs them. check is told what the last one of a list
// has returned.
func lists(size int, record func(c cside.Calls, size int) (last calls.Result, want int64)) contender {
	return func(tb testing.TB) work {
		c := cside.Calls{List: calls.New()}
		ctx := context.Background()
		return func(n int) {
			for range n / size {
				c.List.Reset()
				last, want := record(c, size)
				if err := c.List.Run(ctx); err != nil {
					tb.Fatal(err)
				}
				if want != 0 && last.Int() != want {
					tb.Fatalf("the last call returned %d, want %d", last.Int(), want)
				}
			}
		}
	}
}

// single is lists of one call, without the calls of Go functions that lists adds.
func single(tb testing.TB) work {
	c := cside.Calls{List: calls.New()}
	ctx := context.Background()
	return func(n int) {
		sum := int32(0)
		for range n {
			c.List.Reset()
			r := c.Add(sum, 1)
			if err := c.List.Run(ctx); err != nil {
				tb.Fatal(err)
			}
			sum = int32(r.Int())
		}
		if int(sum) != n {
			tb.Fatalf("the last call returned %d, want %d", sum, n)
		}
	}
}

func addsPlain(c cside.Calls, size int) (last calls.Result, want int64) {
	for i := range int32(size) {
		last = c.Add(i, 1)
	}
	return last, int64(size)
}

func addsReferring(c cside.Calls, size int) (last calls.Result, want int64) {
	first := c.Add(3, 1)
	last = first
	for i := range size - 1 {
		last = c.AddArgs(first.Arg(), calls.Int(int64(i)))
	}
	return last, int64(max(size+2, 4))
}

func addsChecked(c cside.Calls, size int) (last calls.Result, want int64) {
	for i := range int32(size) {
		last = c.Add(i, 1)
		c.List.StopIf(calls.Negative(last))
	}
	return last, int64(size)
}

func mixes(c cside.Calls, size int) (last calls.Result, want int64) {
	for range size {
		last = c.Mix(1, 2, 3, 4, 5, 6, 7, 8)
	}
	return last, 0
}

// BenchmarkList has the times behind the ratios.
func BenchmarkList(b *testing.B) {
	for _, how := range []struct {
		name   string
		record func(c cside.Calls, size int) (calls.Result, int64)
	}{{"plain", addsPlain}, {"reference", addsReferring}, {"condition", addsChecked}, {"mix", mixes}} {
		for _, size := range []int{1, 5, 16, 64, 1024} {
			b.Run(fmt.Sprintf("how=%s/calls=%d", how.name, size), func(b *testing.B) {
				b.ReportAllocs()
				run := lists(size, how.record)(b)
				run(size)
				b.ResetTimer()
				run((b.N + size - 1) / size * size)
			})
		}
	}
	b.Run("how=cgo/calls=1", func(b *testing.B) { cgoAdds(b)(b.N) })
	b.Run("how=cgo-mix/calls=1", func(b *testing.B) { cgoMixes(b)(b.N) })
}
