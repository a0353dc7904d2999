//cheapvet:ignore closeforgotten an example forgets an owner, to show OnCollect

package own_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own"
)

// A Buffer is a block of the heap. It stands for a resource of a C library. Its owner
// is an unexported field, so a Buffer has only the methods that are written for it.
type Buffer struct{ h own.Handle[*[5]byte] }

var buffers = own.NewPool(own.Options{Name: "Buffer", Release: free})

// free is a release function. For a C function libc.Destructor returns one.
func free(_ any, resources []uintptr) error {
	for _, r := range resources {
		cheap.Free(cheap.Pointer(r))
	}
	return nil
}

func NewBuffer(text string) (*Buffer, error) {
	p := cheap.New[[5]byte](cheap.Default())
	if p == nil {
		return nil, cheap.ErrNoMemory
	}
	copy(p[:], text)
	b := new(Buffer)
	if err := b.h.Own(buffers, p, len(p)); err != nil {
		cheap.Delete(cheap.Default(), p) // after an error the block is still ours
		return nil, err
	}
	return b, nil
}

func (b *Buffer) Close() error { return b.h.Close() }

// Text returns an error if the Buffer is closed.
func (b *Buffer) Text() (text string, err error) {
	err = b.h.TryUse(func(p *[5]byte) error {
		text = string(p[:])
		return nil
	})
	return text, err
}

func Example() {
	b, err := NewBuffer("hello")
	if err != nil {
		panic(err)
	}
	fmt.Println(b.Text())
	fmt.Println(b.Close()) // or not
	fmt.Println(b.Text())
	// Output:
	// hello <nil>
	// <nil>
	//  cheap: own: the owner is closed
}

// OnCollect reports owners that were never closed. Nothing leaks.
func ExampleOptions() {
	told := make(chan own.Collected, 1)
	pool := own.NewPool(own.Options{
		Name:      "Texture",
		Numbers:   true,
		Release:   func(_ any, resources []uintptr) error { fmt.Println("released", resources); return nil },
		OnCollect: func(c own.Collected) { told <- c },
	})
	func() {
		t := new(own.Number[uint32])
		if err := t.Own(pool, 42, 4096); err != nil {
			panic(err)
		}
	}() // forgotten
	for {
		runtime.GC() // the first seals the batch, the second finds it dead
		select {
		case c := <-told:
			fmt.Println(c.Pool, c.Count)
			return
		case <-time.After(time.Millisecond):
		}
	}
	// Output:
	// released [42]
	// Texture 1
}

// A statement is released before its database, in whatever order the two are
// closed or forgotten.
func ExampleNumber_OwnWith_parent() {
	released := func(what string) func(any, []uintptr) error {
		return func(_ any, resources []uintptr) error {
			fmt.Println(what, resources)
			return nil
		}
	}
	databases := own.NewPool(own.Options{Name: "DB", Numbers: true, Release: released("close database")})
	statements := own.NewPool(own.Options{Name: "Stmt", Numbers: true, Release: released("finalize statement")})

	var db, stmt own.Number[int]
	if err := errors.Join(db.Own(databases, 1, 1<<20), stmt.OwnWith(statements, 7, own.With{Parent: db.Owner()})); err != nil {
		panic(err)
	}
	db.Close()
	fmt.Println("closed:", db.Closed())
	stmt.Close()
	// Output:
	// closed: true
	// finalize statement [7]
	// close database [1]
}

// A C library has contexts, each with a lock that all calls for its objects need. The
// lock is the state of the context's children. It is an object of its own, which
// refers to no owner.
func ExampleNumber_SetState() {
	type context struct {
		mu  *sync.Mutex
		ctx own.Number[int]
	}
	contexts := own.NewPool(own.Options{Name: "Context", Numbers: true, Release: func(_ any, resources []uintptr) error {
		fmt.Println("destroy context", resources)
		return nil
	}})
	shapes := own.NewPool(own.Options{Name: "Shape", Numbers: true, Release: func(state any, resources []uintptr) error {
		mu := state.(*sync.Mutex)
		mu.Lock()
		defer mu.Unlock()
		fmt.Println("destroy shapes", resources)
		return nil
	}})

	c := &context{mu: new(sync.Mutex)}
	err := c.ctx.Own(contexts, 1, 1<<20)
	if err == nil {
		err = c.ctx.SetState(c.mu)
	}
	if err != nil {
		panic(err)
	}
	var shape own.Number[int]
	c.mu.Lock()
	err = shape.OwnWith(shapes, 7, own.With{Size: 100, Parent: c.ctx.Owner()})
	c.mu.Unlock()
	fmt.Println(err, shape.Close(), c.ctx.Close())
	// Output:
	// destroy shapes [7]
	// destroy context [1]
	// <nil> <nil> <nil>
}

// Each geometry is freed with the handle that made it. A handle has a lock, and refers to no
// owner.
func ExampleNumber_OwnWith_state() {
	type handle struct {
		mu     sync.Mutex
		number int
	}
	geometries := own.NewPool(own.Options{Name: "Geometry", Numbers: true, Release: func(state any, resources []uintptr) error {
		h := state.(*handle)
		h.mu.Lock()
		defer h.mu.Unlock()
		fmt.Println("destroy geometry", resources[0], "with handle", h.number)
		return nil
	}})
	var first, second own.Number[int]
	err := errors.Join(
		first.OwnWith(geometries, 7, own.With{Size: 100, State: &handle{number: 1}}),
		second.OwnWith(geometries, 8, own.With{Size: 100, State: &handle{number: 2}}),
	)
	fmt.Println(err, second.Close(), first.Close())
	// Output:
	// destroy geometry 8 with handle 2
	// destroy geometry 7 with handle 1
	// <nil> <nil> <nil>
}

// A C library writes through a callback, and flushes when its writer is freed. The state is
// where it writes. It must not be the Archive, which has the owner.
func ExampleHandle_OwnWith() {
	type archive struct{ h own.Handle[*[64]byte] }
	archives := own.NewPool(own.Options{Name: "Archive", Release: func(state any, resources []uintptr) error {
		// As archive_free of C, which calls a callback with what is not written yet.
		text := (*[64]byte)(cheap.Pointer(resources[0]))
		_, err := fmt.Fprintf(state.(io.Writer), "%s", bytes.TrimRight(text[:], "\x00"))
		cheap.Free(cheap.Pointer(resources[0]))
		return err
	}})
	p := cheap.New[[64]byte](cheap.Default())
	copy(p[:], "the last block")
	var out strings.Builder
	a := new(archive)
	if err := a.h.OwnWith(archives, p, own.With{Size: len(p), State: &out}); err != nil {
		panic(err)
	}
	err := a.h.Close() // or not: then it is flushed when a is collected
	fmt.Println(out.String(), err)
	// Output: the last block <nil>
}

// Release may fail. Close returns its error.
func ExampleReleaseError() {
	errDisk := errors.New("the disk is full")
	files := own.NewPool(own.Options{
		Name:           "File",
		Numbers:        true,
		Release:        func(any, []uintptr) error { return errDisk },
		OnReleaseError: func(e own.ReleaseError) { fmt.Println("told:", e) },
	})
	var first, second own.Number[int]
	if err := errors.Join(first.Own(files, 3, 4096), second.Own(files, 4, 4096)); err != nil {
		panic(err)
	}
	fmt.Println("Close:", first.Close())
	second.Use(func(int) { second.Close() }) // released when Use returns
	// Output:
	// Close: the disk is full
	// told: cheap: File: release: the disk is full
}

// The releases of a library that is bound to a thread run in Drain, which that
// thread calls.
func ExampleQueue() {
	var queue own.Queue
	textures := own.NewPool(own.Options{
		Name:    "Texture",
		Numbers: true,
		Release: func(_ any, ids []uintptr) error { fmt.Println("delete", ids); return nil },
		Run:     queue.Run(),
	})
	var t own.Number[uint32]
	if err := t.Own(textures, 3, 4096); err != nil {
		panic(err)
	}
	t.Close()
	fmt.Println("queued:", textures.Stats().Queued)
	fmt.Println("released:", queue.Drain(100)) // once a frame, on the thread
	// Output:
	// queued: 1
	// delete [3]
	// released: 1
}

// A constructor makes many resources in one call, and Make hands them out one by
// one. How many calls there are depends on the number of Ps that the program uses:
// each P has a stock of its own.
func ExampleNumber_Make() {
	calls := 0
	pool := own.NewPool(own.Options{
		Construct: func(resources []uintptr) (int, error) { // as a C library would
			calls++
			for i := range resources {
				resources[i] = uintptr(1000*calls + i)
			}
			return len(resources), nil
		},
		Numbers: true,
		Release: func(_ any, _ []uintptr) error { return nil },
	})
	numbers := make([]own.Number[uintptr], 1000)
	made := map[uintptr]bool{}
	for i := range numbers {
		if err := numbers[i].Make(pool); err != nil {
			panic(err)
		}
		n, _ := numbers[i].Value()
		made[n] = true
	}
	fmt.Println(len(made), "numbers, calls of Construct fewer than a tenth:", calls < 100)
	// Output: 1000 numbers, calls of Construct fewer than a tenth: true
}

// A program calls Flush before it ends, or its queued releases are dropped.
func ExampleFlush() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println(own.Flush(ctx))
	// Output: <nil>
}
