package heap

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/span"
	"github.com/cheapgo/cheap/internal/test/testheap"
)

func TestMain(m *testing.M) { testheap.Main(m) }

// The errors that package cheap makes.
var (
	ErrNoMemory  = errors.New("cheap: out of memory")
	ErrLimit     = errors.New("cheap: a memory limit is reached")
	ErrDestroyed = errors.New("cheap: it is destroyed already")
)

type MisuseError struct {
	Op     string
	Addr   uintptr
	Reason string
}

func (e *MisuseError) Error() string { return "cheap: " + e.Op + ": " + e.Reason }

type LiveError struct {
	Op            string
	Blocks, Bytes int64
}

func (e *LiveError) Error() string {
	return fmt.Sprintf("%s: live blocks: %d (%d bytes)", e.Op, e.Blocks, e.Bytes)
}

// above is what package cheap is to the heap.
type above struct{}

func init() {
	span.SetHolder(above{})
	SetErrors(above{}, ErrNoMemory, ErrLimit, ErrDestroyed)
}

func (above) Tick() { Tick() }

func (above) Misuse(op string, addr uintptr, reason string) error {
	return &MisuseError{op, addr, reason}
}

func (above) Renamed(v any, op string) any {
	if m, ok := v.(*MisuseError); ok {
		m.Op = op
	}
	return v
}

func (above) Live(op string, blocks, bytes int64) error { return &LiveError{op, blocks, bytes} }

// An Allocator is a Heap or a Local.
type Allocator interface {
	Malloc(size int) unsafe.Pointer
	AlignedMalloc(size, align int) unsafe.Pointer
	Calloc(count, size int) unsafe.Pointer
	Realloc(ptr unsafe.Pointer, size int) unsafe.Pointer
	Free(ptr unsafe.Pointer)
}

var _ [testheap.CacheBytes]struct{} = [cacheBytes]struct{}{}

var (
	wantMisuse    = testheap.WantMisuse[MisuseError]
	MustAccuse    = testheap.MustAccuse[MisuseError]
	MustAccuseAll = testheap.MustAccuseAll[MisuseError, Stats]
)

// NewHeap returns a heap that is destroyed when the test ends; one that has live blocks then fails
// the test.
func NewHeap(t testing.TB, o Options) *Heap {
	t.Helper()
	h, err := New(o)
	return testheap.Make(t, h, err, ErrDestroyed)
}

// NewHeapAndLocal returns such a heap, and a Local of it, which is destroyed when the test ends. Then
// the heap must hold nothing.
func NewHeapAndLocal(t testing.TB, o Options) (*Heap, *Local) {
	t.Helper()
	h := NewHeap(t, o)
	l := h.NewLocal()
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		l.Destroy()
		MustHoldNothing(t, h)
	})
	return h, l
}

// MustHoldNothing looks whether h, all whose blocks have been freed, is left with its caches alone
// after a Trim.
func MustHoldNothing(t testing.TB, h *Heap) {
	t.Helper()
	h.EmptyQuarantine()
	h.Trim()
	testheap.MustHoldNothing(t, h.Stats())
}

// A pressureFunc is a Pacer.
type pressureFunc func()

func (f pressureFunc) Pressure() { f() }

func (f pressureFunc) Check() {}

func (f pressureFunc) Reclaim(int64, int, bool) error { return account.ErrUnpaced }

func (f pressureFunc) Wait(context.Context, int64, bool, func() bool) error {
	return account.ErrUnpaced
}

// useSome allocates and frees blocks of many sizes, 4 MiB together.
func useSome(h *Heap) {
	var blocks []unsafe.Pointer
	for i := range 64 {
		blocks = append(blocks, h.Malloc(1000*i), h.Malloc(65_536))
	}
	for _, p := range blocks {
		h.Free(p)
	}
}
