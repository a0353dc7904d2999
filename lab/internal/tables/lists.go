//go:build cgo && unix

package tables

import (
	"context"
	"fmt"

	cheapcalls "github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// Lists is the table of what a call costs that is recorded in a list.
func Lists() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "lists",
			Title: "What a call in a list costs",
			About: "A C function that adds two ints, called through cgo, and recorded in a list of so many calls that one cgo call makes (package calls). " +
				"The time is that of recording and of running the list, for each call. " +
				"In the rows of reference each call but the first has an earlier result as an argument; in those of condition the list would stop if a result were negative; " +
				"the rows of eight call a function of four ints and four doubles. With -run lists there are more sizes of them.",
			Unit:  "call",
			Chart: result.Bars,
		},
		Rows: listRows(),
	}
}

// mixed is what the function of eight arguments returns.
var mixed = cside.Mix(1, 2, 3, 4, 5, 6, 7, 8)

// recorders record calls, and say what the last one returns; less than 0 is mixed.
var recorders = map[string]func(c cside.Calls, size int) (last cheapcalls.Result, want int64){
	"list": func(c cside.Calls, size int) (last cheapcalls.Result, want int64) {
		for i := range int32(size) {
			last = c.Add(i, 1)
		}
		return last, int64(size)
	},
	"reference": func(c cside.Calls, size int) (last cheapcalls.Result, want int64) {
		first := c.Add(0, 1)
		last = first
		for i := range size - 1 {
			last = c.AddArgs(first.Arg(), cheapcalls.Int(int64(i)+1))
		}
		return last, int64(size)
	},
	"condition": func(c cside.Calls, size int) (last cheapcalls.Result, want int64) {
		for i := range int32(size) {
			last = c.Add(i, 1)
			c.List.StopIf(cheapcalls.Negative(last))
		}
		return last, int64(size)
	},
	"eight-list": func(c cside.Calls, size int) (last cheapcalls.Result, want int64) {
		for range size {
			last = c.Mix(1, 2, 3, 4, 5, 6, 7, 8)
		}
		return last, -1
	},
}

// listRows compares lists with the same calls through cgo.
func listRows() []measure.Row {
	rows := []measure.Row{{
		Name: "cgo", Group: "two",
		Open: func(int) (measure.Work, error) { return parallel(1, openAdder(add)) },
	}}
	sizes := []int{1, 5, 16, 64, 1024}
	for _, kind := range []string{"list", "reference", "condition", "eight-list"} {
		group, versus := "two", "cgo"
		if kind == "eight-list" {
			group, versus = "eight", "eight-cgo"
			rows = append(rows, measure.Row{
				Name: versus, Group: group,
				Open: func(int) (measure.Work, error) { return measure.Work{Run: mix}, nil },
			})
		}
		for _, size := range sizes {
			rows = append(rows, measure.Row{
				Name: fmt.Sprintf("%s-%d", kind, size), Group: group, Versus: versus,
				Named: kind != "list" && size != 64,
				Open:  func(int) (measure.Work, error) { return listWork(size, recorders[kind]), nil },
			})
		}
	}
	return rows
}

// mix calls the function of eight arguments through cgo.
//
//go:noinline
func mix(n int) {
	for range n {
		cside.Mix(1, 2, 3, 4, 5, 6, 7, 8)
	}
}

// listWork runs lists of size calls; the last may be shorter.
func listWork(size int, record func(c cside.Calls, size int) (last cheapcalls.Result, want int64)) measure.Work {
	c := cside.Calls{List: cheapcalls.New()}
	ctx := context.Background()
	return counted(func(n int) error {
		for n > 0 {
			k := min(n, size)
			c.List.Reset()
			last, want := record(c, k)
			if err := c.List.Run(ctx); err != nil {
				return err
			}
			if want < 0 {
				if got := last.Float(); got != mixed {
					return fmt.Errorf("the last call of a list returned %v, want %v", got, mixed)
				}
			} else if got := last.Int(); got != want {
				return fmt.Errorf("the last call of a list returned %d, want %d", got, want)
			}
			n -= k
		}
		return nil
	}, noCount, 0)
}

// noCount counts nothing: a list checks what its calls return.
func noCount() int64 { return 0 }
