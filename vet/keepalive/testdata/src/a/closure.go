package a

/*
typedef struct { int n; } shrub;
static shrub *shrub_new(void) { return calloc(1, sizeof(shrub)); }
static void shrub_free(shrub *t) { free(t); }
static int shrub_len(shrub *t) { return t->n; }
*/
import "C"

import "runtime"

type Shrub struct { // want Shrub:"owner"
	p *C.shrub
}

func NewShrub() *Shrub {
	s := &Shrub{C.shrub_new()}
	runtime.SetFinalizer(s, func(s *Shrub) { C.shrub_free(s.p) })
	return s
}

func closure(s *Shrub) func() int {
	return func() int {
		return int(C.shrub_len(s.p)) // want `s may be collected while C.shrub_len uses what it owns`
	}
}

func closureOfLocal() func() int {
	s := NewShrub()
	f := func() int {
		return int(C.shrub_len(s.p)) // want `s may be collected while C.shrub_len uses what it owns`
	}
	return f
}

func closureCalledHere(s *Shrub) int {
	f := func() int {
		return int(C.shrub_len(s.p)) // want `s may be collected while C.shrub_len uses what it owns`
	}
	return f() + f()
}

func closureInClosureReturned(s *Shrub) func() int {
	return func() int {
		return enter(func() C.int {
			return C.shrub_len(s.p) // want `s may be collected while C.shrub_len uses what it owns`
		})
	}
}

// Who has the closure has the shrub, or the other closure has it.

var closures []func() int

func closureStored(s *Shrub) {
	closures = append(closures, func() int { return int(C.shrub_len(s.p)) })
}

func closureByVariable(s *Shrub) func() int {
	f := func() int { return int(C.shrub_len(s.p)) }
	closures = append(closures, f)
	return f
}

func closureWithShrub(s *Shrub) (func() int, *Shrub) {
	return func() int { return int(C.shrub_len(s.p)) }, s
}

func shrubWithClosure() (*Shrub, func() int) {
	s := NewShrub()
	f := func() int { return int(C.shrub_len(s.p)) }
	return s, f
}

func closureAndEnd(s *Shrub) (f func() int, end func()) {
	return func() int { return int(C.shrub_len(s.p)) }, func() { runtime.KeepAlive(s) }
}

func closureThatKeeps(s *Shrub) func() int {
	return func() int {
		defer runtime.KeepAlive(s)
		return int(C.shrub_len(s.p))
	}
}

func closureCalled(s *Shrub) int {
	f := func() C.int { return C.shrub_len(s.p) }
	n := f() + f()
	runtime.KeepAlive(s)
	return int(n)
}

func closureInClosure(s *Shrub) int {
	n := enter(func() C.int {
		return C.int(enter(func() C.int { return C.shrub_len(s.p) }))
	})
	runtime.KeepAlive(s)
	return n
}
