//go:build cgo

package widgets

import (
	"runtime"
	"testing"
	"weak"

	"github.com/cheapgo/cheap/internal/test/testwait"
)

// turn is a turn of the loop after a collection.
func turn() {
	runtime.GC()
	Turn()
}

// turnUntil turns until f returns true.
func turnUntil(t *testing.T, what string, f func() bool) {
	t.Helper()
	testwait.Until(t, what, func() bool { turn(); return f() })
}

// must returns what a function has made.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestForgottenButtons has Go forget the buttons of a window, whose functions refer to them.
func TestForgottenButtons(t *testing.T) {
	const n = 1000
	clicked, ended := 0, clicks.Stats().Ended
	window := must(NewWindow())
	for range n {
		b := must(NewButton())
		b.OnClick(func() {
			clicked++
			if b.h.Closed() {
				t.Error("a button is closed in its function")
			}
		})
		window.Add(b)
	}
	for range 5 {
		turn()
	}
	window.Click()
	if clicked != n || Alive() != n+1 {
		t.Errorf("%d buttons answer, %d widgets are alive", clicked, Alive())
	}
	if s := buttons.Stats(); s.Live != n || s.Held != n {
		t.Errorf("%+v", s)
	}
	window.Empty()
	turnUntil(t, "the buttons are gone", func() bool { return Alive() == 1 })
	window.Close()
	Turn()
	if Alive() != 0 {
		t.Errorf("%d widgets are alive", Alive())
	}
	if s := clicks.Stats(); s.Live != 0 || s.Ended != ended {
		t.Errorf("%+v", s)
	}
}

// forget makes a window with buttons, connects each, and forgets all.
func forget(n int, connect func(w *Window, b *Button)) weak.Pointer[Window] {
	window := must(NewWindow())
	for range n {
		b := must(NewButton())
		connect(window, b)
		window.Add(b)
	}
	return weak.Make(window)
}

// TestForgottenWindow has Go forget a window and its buttons.
func TestForgottenWindow(t *testing.T) {
	forget(100, func(_ *Window, b *Button) { b.OnClick(func() { b.Click() }) })
	turnUntil(t, "all are gone", func() bool { return Alive() == 0 })
}

// TestCycleThroughC shows what Hold cannot free: the window of C keeps a button, which is held, and
// whose function refers to the Window. Somebody has to empty the window.
func TestCycleThroughC(t *testing.T) {
	window := forget(100, func(w *Window, b *Button) { b.OnClick(func() { w.Add(b) }) })
	for range 5 {
		turn()
	}
	if Alive() != 101 {
		t.Errorf("%d widgets are alive", Alive())
	}
	window.Value().Empty()
	turnUntil(t, "all are gone", func() bool { return Alive() == 0 })
}

// TestWithoutHold shows what a forgotten button does that is not held: it falls silent.
func TestWithoutHold(t *testing.T) {
	window, clicked := must(NewWindow()), 0
	before := Alive()
	b := must(newButton())
	b.OnClick(func() { clicked++ })
	window.Add(b)
	window.Click()
	b = nil
	ended := clicks.Stats().Ended
	turnUntil(t, "the button is silent", func() bool {
		window.Click()
		return clicks.Stats().Ended > ended
	})
	if clicked == 0 || Alive() != before+1 {
		t.Errorf("%d clicks, %d widgets", clicked, Alive()-before)
	}
	window.Close()
	turnUntil(t, "the window is gone", func() bool { return Alive() < before })
}

// TestCloseInTheClick closes a button that a window has.
func TestCloseInTheClick(t *testing.T) {
	before := Alive()
	window, clicked := must(NewWindow()), 0
	b := must(NewButton())
	b.OnClick(func() { clicked++; b.Close() })
	window.Add(b)
	window.Click()
	Turn()
	window.Click() // nobody answers
	if clicked != 1 || Alive() != before+2 {
		t.Errorf("%d clicks, %d widgets", clicked, Alive()-before)
	}
	window.Close()
	Turn()
	if Alive() != before {
		t.Errorf("%d widgets are left", Alive()-before)
	}
}
