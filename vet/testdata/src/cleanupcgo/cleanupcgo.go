package cleanupcgo

// typedef struct thing thing;
import "C"

import "github.com/cheapgo/cheap/own"

type thing struct{ h own.Handle[*C.thing] }

type library struct {
	things []*thing
	first  *thing
	n      int
}

func pools(t *thing, l *library) {
	own.NewPool(own.Options{State: t})                                                   // want `Options.State refers to t`
	own.NewPool(own.Options{Release: func(any, []uintptr) error { return t.h.Close() }}) // want `Options.Release refers to t`
	own.NewPool(own.Options{State: l})                                                   // want `Options.State refers to l`
}
