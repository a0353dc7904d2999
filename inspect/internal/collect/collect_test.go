package collect

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own"
)

var x byte

// A link refers to the next one, and has a finalizer, so it takes a collection of its own.
type link struct {
	owner own.Handle[unsafe.Pointer]
	next  *link
}

// TestAll drops owners, some in a chain of objects that are found one after the other. The first
// release takes long.
func TestAll(t *testing.T) {
	released := 0
	var once sync.Once
	running, goOn := make(chan bool), make(chan bool)
	p := own.NewPool(own.Options{Name: "collect.Pool", Release: func(_ any, r []uintptr) error {
		once.Do(func() {
			close(running)
			<-goOn
		})
		released += len(r)
		return nil
	}, Run: own.Workers(1)})
	go func() {
		<-running // and All waits
		close(goOn)
	}()
	const chain, alone = 5, 1000
	testcall.Aside(func() {
		var first *link
		for range chain {
			first = &link{next: first}
			testcall.Want(t, first.owner.Own(p, unsafe.Pointer(&x), 100))
			runtime.SetFinalizer(first, func(*link) {})
		}
		for range alone {
			testcall.Want(t, new(link).owner.Own(p, unsafe.Pointer(&x), 100))
		}
	})
	testcall.Want(t, All(context.Background()))
	if st := p.Stats(); st.Live != 0 || released != chain+alone {
		t.Errorf("%d live, %d released", st.Live, released)
	}
}

// TestAllWithDrain has releases that wait for a Drain, and a context that is done.
func TestAllWithDrain(t *testing.T) {
	var queue own.Queue
	p := own.NewPool(own.Options{Name: "drain.Pool", Release: func(any, []uintptr) error { return nil }, Run: queue.Run()})
	var o own.Handle[unsafe.Pointer]
	testcall.Must(t, o.Own(p, unsafe.Pointer(&x), 100))
	o.Close()
	testcall.Want(t, All(context.Background()))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := All(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	queue.Drain(0)
}
