//go:build cgo

package calls_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cheapgo/cheap/calls"
	"github.com/cheapgo/cheap/calls/internal/ctest"
)

// TestGrowKeepsRows has a text that is larger than its buffer behind another repetition, whose
// rows stay.
func TestGrowKeepsRows(t *testing.T) {
	c := newCalls()
	one, two := ctest.NewCursor(5), ctest.NewCursor(3)
	defer ctest.FreeCursor(one)
	defer ctest.FreeCursor(two)
	first := c.List.Repeat(10)
	first.While(calls.Equal(c.Next(one), 100))
	column := first.Ints(c.Integer(one))
	first.End()
	second := c.List.Repeat(10)
	second.While(calls.Equal(c.Next(two), 100))
	text := c.Text(two)
	m := c.Length(c.List.String("three"))
	texts := second.Bytes(text, m, 1) // more than 1
	second.End()
	mustRun(t, c.List)
	if got := fmt.Sprint(column.Values()); got != "[1 -2 3 -4 5]" || first.More() {
		t.Errorf("the rows of the first are %s, more: %t", got, first.More())
	}
	if second.Rows() == 0 || len(texts.At(0)) != 5 {
		t.Errorf("the second has %d rows", second.Rows())
	}
}

// TestCancelledAtTheEnd cancels runs of many repetitions without rows, each run while another
// While is looked at that does not hold. None has a row afterwards.
func TestCancelledAtTheEnd(t *testing.T) {
	const most = 100
	c := newCalls()
	var loops []*calls.Repeat
	for range most {
		loop := c.List.Repeat(5)
		loop.While(calls.Equal(c.Callback(1), 100))
		c.Add(1, 2)
		loop.End()
		loops = append(loops, loop)
	}
	for end := 1; end < most; end++ {
		ctx, cancel := context.WithCancel(context.Background())
		turns := 0
		ctest.OnCallback = func(int64) int64 {
			if turns++; turns == end {
				cancelRun(c.List, cancel)
			}
			return 0
		}
		if err := c.List.Run(ctx); err != context.Canceled || turns != end {
			t.Fatalf("Run returned %v, after %d calls, want %d", err, turns, end)
		}
		mustRun(t, c.List)
		if turns != most {
			t.Errorf("cancelled in call %d: %d calls, want %d", end, turns, most)
		}
		for i, loop := range loops {
			if loop.Rows() != 0 || loop.More() {
				t.Fatalf("cancelled in call %d: repetition %d has %d rows of none, more: %t", end, i, loop.Rows(), loop.More())
			}
		}
	}
}

// A table is a repetition of a random list, and what it has read.
type table struct {
	reader
	want, got []ctest.Row
}

// FuzzRepeat reads random tables by random lists: with rows and buffers of all sizes, with
// calls in between and skips within, and with contexts that callbacks cancel. No row is lost,
// none is read twice, and the calls in between are made once.
func FuzzRepeat(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { readTables(t, rand.New(rand.NewPCG(seed, 1))) })
}

func readTables(t *testing.T, r *rand.Rand) {
	c, m := newCalls(), newMachine(t)
	var cancel context.CancelFunc
	calm := false
	ctest.OnCallback = func(int64) int64 {
		switch {
		case calm || r.IntN(20) > 0:
		case r.IntN(2) == 0:
			cancel() // C is told at some later time
		default:
			cancelRun(c.List, cancel)
		}
		return 0
	}
	var tables []*table
	var notes []calls.Result
	rows := 0
	note := func() {
		if r.IntN(2) == 0 {
			notes = append(notes, c.Mul(m, int64(len(notes)), 3))
		}
	}
	for range 1 + r.IntN(4) {
		note()
		x := new(table)
		total := r.IntN(1 + r.IntN(60))
		if r.IntN(10) == 0 {
			total += 1000
		}
		rows += total
		plain, cursor := ctest.NewCursor(total), ctest.NewCursor(total)
		for range r.IntN(30) { // so that the first text may be long
			ctest.Next(plain)
			ctest.Next(cursor)
		}
		for row, ok := ctest.Next(plain); ok; row, ok = ctest.Next(plain) {
			x.want = append(x.want, row)
		}
		ctest.FreeCursor(plain)
		t.Cleanup(func() { ctest.FreeCursor(cursor) })
		x.c = c
		x.loop = c.List.Repeat(1 + r.IntN(1+r.IntN(100)))
		next := c.Next(cursor)
		if r.IntN(3) == 0 {
			c.Callback(1)
		}
		x.loop.While(calls.Equal(next, 100))
		x.ints = x.loop.Ints(c.Integer(cursor))
		if r.IntN(3) == 0 {
			c.List.SkipIf(calls.NotEqual(next, 100), 2) // never
			c.Callback(2)
			c.Callback(2)
		}
		text := c.Text(cursor)
		x.texts = x.loop.Bytes(text, c.Bytes(cursor), 1+r.IntN(1+r.IntN(300)))
		x.reals = x.loop.Floats(c.Real(cursor))
		x.nulls = x.loop.Equal(text, 0)
		x.loop.End()
		tables = append(tables, x)
	}
	note()
	for runs := 0; ; runs++ {
		if runs > 3*rows+100 {
			calm = true
		}
		if runs > 6*rows+200 {
			t.Fatalf("no end after %d runs", runs)
		}
		ctx := context.Background()
		ctx, cancel = context.WithCancel(ctx)
		err := c.List.Run(ctx)
		cancelled := ctx.Err() != nil
		cancel()
		if err != nil && !cancelled {
			t.Fatal(err)
		}
		more := false
		for _, x := range tables {
			x.got = append(x.got, x.rows()...)
			more = more || x.loop.More()
		}
		if err == nil && !more {
			break
		}
	}
	for i, x := range tables {
		if fmt.Sprint(x.got) != fmt.Sprint(x.want) {
			t.Errorf("table %d: %d rows, want %d: %.300v", i, len(x.got), len(x.want), x.got)
		}
	}
	if _, n := ctest.State(m); n != int64(len(notes)) {
		t.Errorf("%d calls beside the repetitions, want %d", n, len(notes))
	}
}
