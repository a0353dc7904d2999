package perobjectuser

import (
	"runtime"

	"perobject"
)

type holder struct{ m *perobject.Image }

func hold(m *perobject.Image) *holder {
	h := &holder{m}
	runtime.SetFinalizer(h, func(h *holder) { h.m.Free() }) // want `a finalizer for each object, which ends in C.image_free`
	runtime.AddCleanup(h, (*perobject.Image).Close, m)      // want `a cleanup for each object`
	runtime.AddCleanup(h, func(m *perobject.Image) { m.Len() }, m)
	return h
}
