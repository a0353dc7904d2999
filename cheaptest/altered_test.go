package cheaptest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// An altered allocator is a heap, which is right in all respects, but for the methods
// that a test has replaced.
type altered struct {
	heap *cheap.Heap

	malloc  func(size int) pointer
	free    func(p pointer)
	destroy func() error
	aligned func(size, align int) pointer
	calloc  func(count, size int) pointer
	realloc func(p pointer, size int) pointer
	usable  func(p pointer) int
	try     func(size int) (pointer, error)

	mu     sync.Mutex
	live   map[pointer]int  // the sizes of live blocks
	ever   map[pointer]bool // all blocks that Malloc has returned so far
	harmed bool             // all under mu
}

// A destroyer is an allocator with its end.
type destroyer interface {
	cheap.Allocator
	Destroy() error
}

func unaltered(t *testing.T) *altered {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.DestroyAll() })
	return &altered{
		heap:   h,
		malloc: h.Malloc, free: h.Free, destroy: h.Destroy, aligned: h.AlignedMalloc,
		calloc: h.Calloc, realloc: h.Realloc, usable: h.UsableSize, try: h.TryMalloc,
		live: map[pointer]int{}, ever: map[pointer]bool{},
	}
}

func (a *altered) Malloc(size int) pointer {
	p := a.malloc(size)
	a.mu.Lock()
	defer a.mu.Unlock()
	if p != nil {
		a.live[p], a.ever[p] = size, true
	}
	return p
}

func (a *altered) Free(p pointer) {
	a.forget(p)
	a.free(p)
}

func (a *altered) Realloc(p pointer, size int) pointer {
	q := a.realloc(p, size)
	if q != nil {
		a.forget(p)
	}
	return q
}

func (a *altered) Destroy() error                        { return a.destroy() }
func (a *altered) AlignedMalloc(size, align int) pointer { return a.aligned(size, align) }
func (a *altered) Calloc(count, size int) pointer        { return a.calloc(count, size) }
func (a *altered) UsableSize(p pointer) int              { return a.usable(p) }
func (a *altered) TryMalloc(size int) (pointer, error)   { return a.try(size) }

func (a *altered) forget(p pointer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.live, p)
}

// harm changes the first byte of a live block, once. Realloc might cut off another
// byte.
func (a *altered) harm() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p, size := range a.live {
		if size > 0 && !a.harmed {
			a.harmed = true
			flip(p)
		}
	}
}

// gaveOut reports whether p is a block from Malloc, live or not.
func (a *altered) gaveOut(p pointer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ever[p]
}

func flip(p pointer) { *(*byte)(p) ^= 1 }

// A sized allocator is an altered one that has a largest size as well.
type sized struct {
	*altered
	max      int
	contains func(p pointer) bool
}

func unalteredSized(t *testing.T) *sized {
	s := &sized{unaltered(t), 1000, nil}
	s.contains = func(p pointer) bool {
		for block, size := range s.live {
			if uintptr(p)-uintptr(block) < uintptr(size) {
				return true
			}
		}
		return false
	}
	s.malloc = func(size int) pointer {
		if size > s.max {
			panic("too large")
		}
		return s.heap.Malloc(size)
	}
	s.aligned = func(size, align int) pointer { return s.heap.AlignedMalloc(size, align) }
	return s
}

func (s *sized) MaxSize() int            { return s.max }
func (s *sized) Contains(p pointer) bool { return s.contains(p) }

// goroutine returns a value that differs between goroutines.
func goroutine() string {
	var b [40]byte
	return strings.Fields(string(b[:runtime.Stack(b[:], false)]))[1]
}

// A recorder is a reporter that records errors.
type recorder struct {
	mu     sync.Mutex
	errors []string // under mu
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// complaints runs a check and returns the errors that it reports.
func complaints(c check, a destroyer, p Guarantees) []string {
	r := new(recorder)
	testcall.Aside(func() { // Fatalf may end this goroutine
		defer func() {
			if v := recover(); v != nil {
				r.Errorf("panic: %v", v)
			}
		}()
		t := newTrial(r, a, a.Destroy, p)
		t.time, t.seed = 0, 1
		c.run(t)
	})
	return r.errors
}
