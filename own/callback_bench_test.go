package own

import (
	"runtime/cgo"
	"testing"
	"unsafe"
)

// BenchmarkCallback compares a Callback with a cgo.Handle, without the way from C to Go.
func BenchmarkCallback(b *testing.B) {
	p := benchPool()
	var x byte
	var o Owner
	p.Own(&o, unsafe.Pointer(&x), 100)
	kind := NewCallbacks("bench", func() {})
	n := 0
	f := func() { n++ }
	b.Run("do=call/by=callback", func(b *testing.B) {
		var c Callback[func()]
		data := c.Set(kind, &o, f)
		for b.Loop() {
			kind.Call(data, func(f func()) { f() })
		}
		c.Clear()
	})
	b.Run("do=call/by=handle", func(b *testing.B) {
		h := cgo.NewHandle(f)
		for b.Loop() {
			h.Value().(func())()
		}
		h.Delete()
	})
	b.Run("do=set/by=callback", func(b *testing.B) {
		for b.Loop() {
			var c Callback[func()]
			c.Set(kind, &o, f)
			c.Clear()
		}
	})
	b.Run("do=set/by=handle", func(b *testing.B) {
		for b.Loop() {
			cgo.NewHandle(f).Delete()
		}
	})
	b.Run("do=forget/by=callback", func(b *testing.B) {
		for b.Loop() {
			c := new(Callback[func()])
			c.Set(kind, &o, f)
			sinkCallback = c
		}
	})
	b.Run("do=replace/by=callback", func(b *testing.B) {
		var c Callback[func()]
		for b.Loop() {
			c.Set(kind, &o, f)
		}
		c.Clear()
	})
}

var sinkCallback *Callback[func()]
