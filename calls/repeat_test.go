//go:build cgo

package calls_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/calls/internal/ctest"
)

// A reader records how to read the rows of a cursor.
type reader struct {
	c     ctest.Calls
	loop  *calls.Repeat
	ints  calls.Column[int64]
	reals calls.Column[float64]
	texts calls.Texts
	nulls calls.Flags
}

func newReader(cursor ctest.Cursor, rows, size int) *reader {
	r := &reader{c: newCalls()}
	r.loop = r.c.List.Repeat(rows)
	r.loop.While(calls.Equal(r.c.Next(cursor), 100))
	r.ints = r.loop.Ints(r.c.Integer(cursor))
	r.reals = r.loop.Floats(r.c.Real(cursor))
	text := r.c.Text(cursor)
	r.texts = r.loop.Bytes(text, r.c.Bytes(cursor), size)
	r.nulls = r.loop.Equal(text, 0)
	r.loop.End()
	return r
}

// rows returns those of the last run.
func (r *reader) rows() (rows []ctest.Row) {
	for i := range r.loop.Rows() {
		rows = append(rows, ctest.Row{Integer: r.ints.Values()[i], Real: r.reals.Values()[i], Text: r.texts.String(i), Null: r.nulls.Values()[i]})
	}
	return rows
}

// TestRepeat reads rows in runs of many sizes, and compares them with those by plain calls.
func TestRepeat(t *testing.T) {
	for _, total := range []int{0, 1, 6, 7, 100, 3000} {
		var want []ctest.Row
		cursor := ctest.NewCursor(total)
		for {
			row, ok := ctest.Next(cursor)
			if !ok {
				break
			}
			want = append(want, row)
		}
		ctest.FreeCursor(cursor)
		for _, rows := range []int{1, 2, 7, 99, 100, 101, 5000} {
			for _, size := range []int{1, 30, 64, 4096, 1 << 20} {
				cursor := ctest.NewCursor(total)
				r := newReader(cursor, rows, size)
				var got []ctest.Row
				runs := 0
				for more := true; more; more = r.loop.More() {
					mustRun(t, r.c.List)
					if n := r.loop.Rows(); n > rows {
						t.Fatalf("%d rows, of %d at most", n, rows)
					}
					got = append(got, r.rows()...)
					if runs++; runs > 2*total+2 {
						t.Fatalf("no end after %d runs", runs)
					}
				}
				ctest.FreeCursor(cursor)
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%d rows by %d in %d bytes: %d rows, not equal", total, rows, size, len(got))
				}
			}
		}
	}
}

// TestRepeatBetween has calls before and behind repetitions, and two of them.
func TestRepeatBetween(t *testing.T) {
	c, m := newCalls(), newMachine(t)
	one, two := ctest.NewCursor(10), ctest.NewCursor(25)
	defer ctest.FreeCursor(one)
	defer ctest.FreeCursor(two)
	c.Note(m, 1)
	read := func(cursor ctest.Cursor) (*calls.Repeat, calls.Column[int64]) {
		loop := c.List.Repeat(8)
		loop.While(calls.Equal(c.Next(cursor), 100))
		column := loop.Ints(c.Integer(cursor))
		loop.End()
		return loop, column
	}
	first, a := read(one)
	c.Note(m, 2)
	second, b := read(two)
	c.Note(m, 3)
	var fromA, fromB []int64
	for runs := 1; ; runs++ {
		mustRun(t, c.List)
		fromA, fromB = append(fromA, a.Values()...), append(fromB, b.Values()...)
		if !first.More() && !second.More() {
			break
		}
		if runs > 10 {
			t.Fatal("no end")
		}
	}
	if len(fromA) != 10 || len(fromB) != 25 || fromA[9] != -10 || fromB[24] != 25 {
		t.Errorf("the rows are %v and %v", fromA, fromB)
	}
	if _, n := ctest.State(m); n != 3 {
		t.Errorf("%d calls beside the repetitions, want 3", n)
	}
}

// TestRepeatStops ends a repetition by a condition in it.
func TestRepeatStops(t *testing.T) {
	c := newCalls()
	cursor := ctest.NewCursor(100)
	defer ctest.FreeCursor(cursor)
	loop := c.List.Repeat(50)
	loop.While(calls.Equal(c.Next(cursor), 100))
	n := c.Integer(cursor)
	c.List.SkipIf(calls.Equal(n, 3), 1)
	c.Add(1, 1)
	c.List.StopIf(calls.Equal(n, 7))
	column := loop.Ints(n)
	loop.End()
	err := c.List.Run(context.Background())
	var stop *calls.StopError
	if !errors.As(err, &stop) || stop.Call != n || stop.Value != 7 || stop.Error() == "" {
		t.Fatalf("Run returned %v", err)
	}
	if got := fmt.Sprint(column.Values()); got != "[1 -2 3 -4 5 -6]" {
		t.Errorf("the rows are %s", got)
	}
	mustRun(t, c.List) // from the beginning, which is the next row
	if got := column.Values(); len(got) != 50 || got[0] != -8 {
		t.Errorf("%d rows, the first is %d", len(got), got[0])
	}
}

// TestRepeatMisuse records repetitions wrongly.
func TestRepeatMisuse(t *testing.T) {
	cursor := ctest.NewCursor(3)
	defer ctest.FreeCursor(cursor)
	c := newCalls()
	mustPanic(t, "the least is 1", func() { c.List.Repeat(0) })
	loop := c.List.Repeat(2)
	mustPanic(t, "a repetition is open", func() { c.List.Repeat(2) })
	mustPanic(t, "no While", func() { loop.End() })
	mustPanic(t, "has no end", func() { c.List.Run(context.Background()) })
	next := c.Next(cursor)
	mustPanic(t, "call While before", func() { loop.Ints(next) })
	loop.While(calls.Equal(next, 100))
	mustPanic(t, "has a While", func() { loop.While(calls.Equal(next, 100)) })
	x := c.Real(cursor)
	mustPanic(t, "use Floats", func() { loop.Ints(x) })
	mustPanic(t, "use Ints", func() { loop.Floats(next) })
	mustPanic(t, "a double", func() { loop.Equal(x, 0) })
	mustPanic(t, "a double", func() { loop.Bytes(x, next, 10) })
	mustPanic(t, "0 bytes", func() { loop.Bytes(next, next, 0) })
	c.List.SkipIf(calls.Equal(next, 1), 1)
	mustPanic(t, "calls to skip", func() { loop.End() })
	c.Add(1, 1)
	column := loop.Floats(x)
	loop.End()
	mustPanic(t, "not being recorded", func() { loop.Ints(next) })
	mustPanic(t, "did not run", func() { loop.Rows() })
	mustPanic(t, "did not run", func() { column.Values() })
	mustRun(t, c.List)
	if got := len(column.Values()); got != 2 {
		t.Errorf("%d rows", got)
	}
	c.List.Reset()
	mustPanic(t, "reset", func() { column.Values() })
}

// TestWhile repeats calls by each condition, as often as it holds.
func TestWhile(t *testing.T) {
	for _, x := range []struct {
		name string
		cond func(calls.Result) calls.Condition
		want int // rows, of 10 at most: the integers are 1, -2, 3, -4 and so on
	}{
		{"equal", func(r calls.Result) calls.Condition { return calls.Equal(r, 1) }, 1},
		{"not equal", func(r calls.Result) calls.Condition { return calls.NotEqual(r, -4) }, 3},
		{"less", func(r calls.Result) calls.Condition { return calls.Less(r, 3) }, 2},
		{"less than the least", func(r calls.Result) calls.Condition { return calls.Less(r, math.MinInt64) }, 0},
		{"at least", func(r calls.Result) calls.Condition { return calls.AtLeast(r, -4) }, 5},
		{"at least the least", func(r calls.Result) calls.Condition { return calls.AtLeast(r, math.MinInt64) }, 10},
		{"negative", calls.Negative, 0},
		{"nil", calls.Nil, 0},
	} {
		cursor := ctest.NewCursor(20)
		c := newCalls()
		loop := c.List.Repeat(10)
		c.Next(cursor)
		n := c.Integer(cursor)
		loop.While(x.cond(n))
		column := loop.Ints(n)
		loop.End()
		mustRun(t, c.List)
		if got := column.Values(); len(got) != x.want || loop.More() != (x.want == 10) {
			t.Errorf("%s: the rows are %d, and more: %t; want %d rows", x.name, got, loop.More(), x.want)
		}
		ctest.FreeCursor(cursor)
	}
}
