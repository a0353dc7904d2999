//go:build cgo && unix

package ctest

import (
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own"
)

// TestClearLetsGo clears callbacks whose functions refer to their objects, and forgets these. What
// the table keeps to serve again must not refer to them, nor when it serves again.
func TestClearLetsGo(t *testing.T) {
	none(t)
	var others [300]own.Callback[func(int) int] // they get the cells of those that are cleared
	testcall.Aside(func() {
		objects := make([]*Object, len(others))
		for i := range objects {
			o := must(t)
			o.Connect(func(int) int { return int(o.Address()) })
			objects[i] = o
		}
		for _, o := range objects {
			o.Callback().Clear()
		}
	})
	none(t)
	for i := range others {
		others[i].Set(Calls, own.Owner{}, func(int) int { return i })
	}
	none(t)
	for i := range others {
		others[i].Clear()
	}
}

// TestHoldEndsWithItsOwner gives a held callback another owner: after the first is closed, and
// before that.
func TestHoldEndsWithItsOwner(t *testing.T) {
	none(t)
	f := func(n int) int { return n }
	for _, row := range []struct {
		name string
		give func(c *own.Callback[func(int) int], o *Object)
	}{
		{"Set", func(c *own.Callback[func(int) int], o *Object) { c.Set(Calls, o.h.Owner(), f) }},
		{"Bind", func(c *own.Callback[func(int) int], o *Object) { c.Bind(o.h.Owner()) }},
	} {
		for _, held := range []int{0, 1} {
			first, second := must(t), must(t)
			var c own.Callback[func(int) int]
			c.Set(Calls, first.h.Owner(), f)
			if !Calls.Hold(c.Data()) {
				t.Errorf("%s: Hold refuses", row.name)
			}
			if held == 0 {
				first.Close()
			}
			row.give(&c, second)
			if n := Calls.Stats().Held; n != int64(held) {
				t.Errorf("%s: %d are held, want %d", row.name, n, held)
			}
			c.Clear()
			first.Close()
			second.Close()
		}
	}
}
