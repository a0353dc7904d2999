// Package own has the names of the package that the analyzers know.
package own

type Handle[P any] struct{ p P }

func (h *Handle[P]) Pointer() P { return h.p }

func (h *Handle[P]) TryUse(f func(P) error) error { return f(h.p) }
