package own_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own"
)

// A Buffer is a block of the heap. It stands for a resource of a C library.
type Buffer struct{ own.Owner }

// free is a release function. With a C library it would be a C function, given
// as Options.Destructor.
func free(resources []uintptr) {
	for _, r := range resources {
		cheap.Free(cheap.Pointer(r))
	}
}

func Example() {
	buffers := own.NewPool(own.Options{Name: "Buffer", Release: free})
	newBuffer := func(text string) (*Buffer, error) {
		p := cheap.Malloc(len(text))
		if p == nil {
			return nil, cheap.ErrNoMemory
		}
		copy(unsafe.Slice((*byte)(p), len(text)), text)
		b := new(Buffer)
		if err := buffers.Own(&b.Owner, p, len(text)); err != nil {
			cheap.Free(p) // after an error the block is still ours
			return nil, err
		}
		return b, nil
	}

	b, err := newBuffer("hello")
	if err != nil {
		panic(err)
	}
	b.Use(func(p unsafe.Pointer) {
		fmt.Println(unsafe.String((*byte)(p), 5))
	})
	b.Close() // or not
	b.Close()
	fmt.Println(b.Closed(), buffers.Destroy(time.Second))
	// Output:
	// hello
	// true <nil>
}

// OnCollect reports owners that were never closed. Nothing leaks.
func ExampleOptions() {
	told := make(chan own.Collected, 1)
	pool := own.NewPool(own.Options{
		Name:      "Texture",
		Release:   func(resources []uintptr) { fmt.Println("released", resources) },
		OnCollect: func(c own.Collected) { told <- c },
	})
	func() {
		t := new(struct{ own.Owner })
		if err := pool.OwnHandle(&t.Owner, 42, 0, 4096); err != nil {
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
func ExamplePool_OwnUnder() {
	released := func(what string) func([]uintptr) {
		return func(resources []uintptr) { fmt.Println(what, resources) }
	}
	databases := own.NewPool(own.Options{Name: "DB", Release: released("close database")})
	statements := own.NewPool(own.Options{Name: "Stmt", Release: released("finalize statement")})

	var db, stmt own.Owner
	databases.OwnHandle(&db, 1, 0, 1<<20)
	statements.OwnHandleUnder(&stmt, &db, 7, 0, 0)
	db.Close()
	fmt.Println("closed:", db.Closed())
	stmt.Close()
	// Output:
	// closed: true
	// finalize statement [7]
	// close database [1]
}

// The releases of a library that is bound to a thread run in Drain, which that
// thread calls.
func ExamplePool_Drain() {
	textures := own.NewPool(own.Options{
		Name:    "Texture",
		Release: func(ids []uintptr) { fmt.Println("delete", ids) },
		Drain:   true,
	})
	var t own.Owner
	textures.OwnHandle(&t, 3, 0, 4096)
	t.Close()
	fmt.Println("queued:", textures.Stats().Queued)
	fmt.Println("released:", textures.Drain(100)) // once a frame, on the thread
	// Output:
	// queued: 1
	// delete [3]
	// released: 1
}

// A constructor makes many resources in one call. Make hands them out one by one,
// and then returns the constructor's error.
func ExamplePool_Make() {
	next := uintptr(0)
	errDry := errors.New("dry")
	pool := own.NewPool(own.Options{
		Construct: func(resources []uintptr) (int, error) {
			for i := range resources {
				if next == 3 {
					return i, errDry
				}
				next++
				resources[i] = next
			}
			return len(resources), nil
		},
		Handles: true, // numbers, not addresses
		Release: func([]uintptr) {},
	})
	for range 4 {
		var o own.Owner
		err := pool.Make(&o)
		r, _ := o.Handle()
		fmt.Println(r, err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
	// 0 dry
}

// A program calls Flush before it ends, or its queued releases are dropped.
func ExampleFlush() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println(own.Flush(ctx))
	// Output: <nil>
}
