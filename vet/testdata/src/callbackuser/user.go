package callbackuser

import "callbackcycle"

type box struct {
	callbackcycle.Toggle
	n int
}

func use(b *callbackcycle.Button, x *box) {
	b.OnClick(func() { b.Each(nil) }) // want `the function refers to b, and OnClick keeps it for C`
	b.OnClick(func() {})
	b.Each(func() { b.Each(nil) })
	x.OnClick(func() { println(x.n) })             // want `refers to x`
	callbackcycle.OnClickOf(b, func() { b = nil }) // want `refers to b`
}
