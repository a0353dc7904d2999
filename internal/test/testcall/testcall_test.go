package testcall

import (
	"runtime"
	"testing"
)

func TestAside(t *testing.T) {
	called := false
	Aside(func() { called = true })
	if !called {
		t.Error("Aside did not wait")
	}
	Aside(func() { runtime.Goexit() }) // returns as well
}

func TestCatch(t *testing.T) {
	if v := Catch(func() { panic("here") }); v != "here" {
		t.Errorf("%v", v)
	}
	if v := Catch(func() {}); v != nil {
		t.Errorf("%v of a function that does not panic", v)
	}
}
