package escapes

// static void *kept;
// static void keep_it(void *p) { kept = p; }
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap/own"
)

type point struct{ x, y int }

type holder struct{ p *point }

var global unsafe.Pointer

func bad(m *own.Mem[point], o *own.Handle[unsafe.Pointer], b *own.Bytes, h *own.Handle[unsafe.Pointer], to chan *point) {
	var p *point
	m.Use(func(q *point) { p = q }) // want `q is kept here`
	m.Use(func(q *point) {
		r := q
		to <- r // want `q is kept here`
	})
	var k holder
	m.Use(func(q *point) { k.p = q })            // want `q is kept here`
	o.Use(func(r unsafe.Pointer) { global = r }) // want `r is kept here`
	h.Use(func(r unsafe.Pointer) { global = r }) // want `r is kept here`
	o.TryUse(func(r unsafe.Pointer) error {
		go func() { println(*(*int)(r)) }() // want `r is kept here`
		return nil
	})
	var data []byte
	b.Use(func(bytes []byte) { data = bytes[1:3] }) // want `bytes is kept here`
	o.Use(keep)
	println(p, data, k.p)
}

func keep(r unsafe.Pointer) {
	global = unsafe.Add(r, 8) // want `r is kept here`
}

func look(*point) {}

func good(m *own.Mem[point], o *own.Handle[unsafe.Pointer], b *own.Bytes) (sum int) {
	var p point
	m.Use(func(q *point) {
		p = *q
		sum += q.x
		q.y = 3
		look(q)
		local := q
		local.x++
	})
	o.Use(func(r unsafe.Pointer) { sum += *(*int)(r) })
	o.Use(func(r unsafe.Pointer) { C.keep_it(r) })
	var text string
	var data []byte
	b.Use(func(bytes []byte) {
		text = string(bytes)
		data = append(data, bytes...)
		sum += int(bytes[0]) + len(bytes)
	})
	println(text, data, p.x)
	return sum
}
