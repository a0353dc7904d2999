package main

import "sync"

var locked struct {
	sync.RWMutex // its methods are not inlined: a sample of an inlined one may fall behind it
	n            int
}

func init() {
	locks := func(n int) {
		for range n {
			locked.Lock()
			locked.n++
			locked.Unlock()
		}
	}
	plain := func(n int) {
		for range n {
			locked.n++
		}
	}
	scenes["locks"] = scene{locks, func() map[string]float64 {
		ns := timed(locks, plain)
		return map[string]float64{"lock": (ns[0] - ns[1]) / ns[0], "c": 0, "crossing": 0}
	}}
}
