//go:build cgo

package libc_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/libc/internal/ctest"
)

func TestConstructor(t *testing.T) {
	c := ctest.NewCounter(5)
	defer c.Close()
	construct := libc.Constructor(ctest.Construct, c.Context())
	for i, step := range []struct {
		ask, n int
		err    error
		want   []uintptr
	}{
		{0, 0, nil, []uintptr{}},
		{3, 3, nil, []uintptr{1, 2, 3}},
		{2, 2, nil, []uintptr{4, 5}},
		{2, 0, libc.ErrConstruct, []uintptr{99, 99}},
	} {
		resources := make([]uintptr, step.ask)
		for i := range resources {
			resources[i] = 99
		}
		n, err := construct(resources)
		if n != step.n || !errors.Is(err, step.err) || !slices.Equal(resources, step.want) {
			t.Errorf("step %d: %d, %v and %v; want %d, %v and %v", i, n, err, resources, step.n, step.err, step.want)
		}
	}
}

func TestConstructorFillsAPrefix(t *testing.T) {
	c := ctest.NewCounter(2)
	defer c.Close()
	resources := []uintptr{7, 8, 9, 10}
	n, err := libc.Constructor(ctest.Construct, c.Context())(resources)
	if n != 2 || err != libc.ErrConstruct || !slices.Equal(resources, []uintptr{1, 2, 9, 10}) {
		t.Errorf("%d, %v and %v", n, err, resources)
	}
}

// TestConstructorIntoGo makes resources by a Go function that moves the stack
// on which they are put.
func TestConstructorIntoGo(t *testing.T) {
	construct := libc.Constructor(ctest.ConstructIntoGo, ctest.Context)
	done := make(chan [8]uintptr)
	go func() {
		var next uintptr
		ctest.OnConstruct = func(context uintptr) uintptr {
			deep(int(next) * 100)
			next++
			return context + next
		}
		var array [8]uintptr
		if n, err := construct(array[:]); n != len(array) || err != nil {
			t.Error(n, err)
		}
		done <- array
	}()
	for i, got := range <-done {
		if want := uintptr(ctest.Context) + uintptr(i) + 1; got != want {
			t.Errorf("resource %d is %#x, want %#x", i, got, want)
		}
	}
}
