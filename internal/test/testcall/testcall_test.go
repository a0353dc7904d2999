package testcall

import (
	"errors"
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

// A recorder is a test that fails, without the one that runs.
type recorder struct {
	testing.TB
	fatal, failed int
}

func (*recorder) Helper()        {}
func (r *recorder) Fatal(...any) { r.fatal++ }
func (r *recorder) Error(...any) { r.failed++ }

func TestMustAndWant(t *testing.T) {
	for err, want := range map[error]int{nil: 0, errors.New("an error"): 1} {
		var r recorder
		Must(&r, err)
		Want(&r, err)
		if r.fatal != want || r.failed != want {
			t.Errorf("%v: %d times Fatal, %d times Error", err, r.fatal, r.failed)
		}
	}
}
