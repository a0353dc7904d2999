//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

/*
#cgo CFLAGS: -O2 -fno-omit-frame-pointer -Wall
#cgo LDFLAGS: -ldl -lm
#include <stdlib.h>
#include "source/cmem.h"
*/
import "C"

import (
	"errors"
	"math"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/fht"

	// The C code. The import makes it a part of what go mod vendor copies, and go build compares.
	_ "github.com/cheapgo/cheap/cmem/source"
)

// C code counts before Go code runs, so C has a constant as well.
var _ [DefaultRate]struct{} = [C.cmem_default_rate]struct{}{}

func init() {
	text, etext := goText()
	C.cmem_set_go_code(C.uintptr_t(text), C.uintptr_t(etext))
	probe()
	learnLabels()
}

// probe finds out how the stack of a goroutine is found from a stack of C, by a call of C that
// looks for the functions that have called it. If it does not find them, as may be with a later
// version of Go, stacks have no functions of Go.
//
//go:noinline
func probe() {
	if off() != "" {
		return
	}
	entry := reflect.ValueOf(cgocall).Pointer()
	end := entry
	for entryOf(end) == entry {
		end += 16 // to which functions are aligned
	}
	C.cmem_set_cgocall(C.uintptr_t(entry), C.uintptr_t(end))
	var pcs [C.cmem_probe_most]C.uintptr_t
	n := C.cmem_probe(&pcs[0])
	self := ownName()
	for _, pc := range pcs[:n] {
		if runtime.FuncForPC(uintptr(pc)-1).Name() == self {
			return
		}
	}
	C.cmem_unprobe()
}

// entryOf returns where the function of an address begins, which other functions may be inlined in.
func entryOf(pc uintptr) uintptr {
	f, _ := runtime.CallersFrames([]uintptr{pc + 1}).Next()
	return f.Entry
}

// ownName returns the name of the function that calls it, which has a frame.
//
//go:noinline
func ownName() string {
	pc, _, _, _ := runtime.Caller(1)
	return runtime.FuncForPC(pc).Name()
}

// goText returns the range of the code of Go functions. The runtime names a function for each
// address in it, and for no other: it is one range, around this function.
func goText() (from, to uintptr) {
	pc, _, _, _ := runtime.Caller(0)
	return edge(pc, -1), edge(pc, 1) + 1
}

// edge returns the last address of Go code from pc on, in steps of that sign.
func edge(pc uintptr, sign int) uintptr {
	step := uintptr(1) << 40
	for step > 0 {
		next := pc + step
		if sign < 0 {
			next = pc - step
		}
		if (next > pc) == (sign > 0) && runtime.FuncForPC(next) != nil {
			pc = next
		} else {
			step /= 2
		}
	}
	return pc
}

func off() string { return C.GoString(C.cmem_off()) }

func setRate(bytes int64) (old int64) {
	old = int64(C.cmem_rate())
	C.cmem_set_rate(C.int64_t(bytes))
	if bytes > 0 {
		countForPace()
	}
	return old
}

// refresh has this thread read the rate: a block as large is never counted by the fast path of malloc.
func refresh() { C.free(C.malloc(257 << 10)) }

// liveBlocks returns the blocks in use that the samples stand for.
func liveBlocks() int64 {
	var c C.struct_cmem_counts
	C.cmem_read(&c)
	return int64(c.live_blocks)
}

// held returns what the allocator has taken for them: a word, and the size that it gives.
func held() int64 {
	var c C.struct_cmem_counts
	C.cmem_read(&c)
	return int64(c.live_usable + 8*c.live_blocks)
}

func waiting() bool { return C.cmem_is_waiting() != 0 }

func unseen() (bytes int64, ok bool) {
	if C.cmem_has_gap() == 0 {
		return 0, true
	}
	// What is freed between the two reads would be missing. What is allocated is in the samples, which come second.
	var header C.int
	all := int64(C.cmem_allocator_in_use(&header))
	if all < 0 {
		return 0, false
	}
	var c C.struct_cmem_counts
	C.cmem_read(&c)
	return max(0, all-int64(c.live_usable+c.live_blocks*C.double(header))), true
}

func rate() int64 { return int64(C.cmem_rate()) }

func read() Stats {
	var c C.struct_cmem_counts
	C.cmem_read(&c)
	s := Stats{
		Mallocs: int64(c.mallocs), Frees: int64(c.frees), Bytes: int64(c.bytes),
		Live: int64(c.live), LiveError: int64(math.Sqrt(float64(c.live_variance))),
		Samples: int64(c.samples), Lost: int64(c.lost), LabelsCut: int64(c.labels_cut),
		Mmaps: int64(c.mmaps), Munmaps: int64(c.munmaps),
		Mapped: int64(c.mapped), MappedError: int64(math.Sqrt(float64(c.mapped_variance))),
	}
	if c.exact != 0 {
		s.Exact, s.Live, s.LiveError = true, max(0, int64(c.held)), 0
	}
	return s
}

// records returns how many threads have a record.
func records() int {
	var c C.struct_cmem_counts
	C.cmem_read(&c)
	return int(c.records)
}

// siteBuffers are for eachSite: as many stacks as there are take a MiB in a large program.
var siteBuffers sync.Pool

// eachSite calls f for each stack that has called malloc, the newest first, and eachMapping for each that has called
// mmap. f must not keep the pointer to the site. The
// addresses that the site refers to stay.
func eachSite(f func(*site))    { each(C.cmem_of_malloc, f) }
func eachMapping(f func(*site)) { each(C.cmem_of_mmap, f) }

func each(of C.int, f func(*site)) {
	buffer, _ := siteBuffers.Get().(*[]C.struct_cmem_site)
	if buffer == nil {
		buffer = new([]C.struct_cmem_site)
	}
	defer siteBuffers.Put(buffer)
	if n := int(C.cmem_sites(of, nil, 0)); n > len(*buffer) {
		*buffer = make([]C.struct_cmem_site, n+n/8+64)
	}
	all := *buffer
	n := min(int(C.cmem_sites(of, unsafe.SliceData(all), C.size_t(len(all)))), len(all))
	var one site
	for i, s := range all[:n] {
		// The addresses are in memory that C never frees.
		pcs := unsafe.Slice((*uintptr)(unsafe.Pointer(s.pcs)), int(s.c)+int(s._go))
		one = site{
			number: n - 1 - i,
			id:     uintptr(unsafe.Pointer(s.stack)), plain: uintptr(unsafe.Pointer(s.plain)),
			labels: unsafe.Pointer(s.labels),
			c:      pcs[:s.c], goPart: pcs[s.c:],
			counts: counts{
				allocs: float64(s.allocs), allocBytes: float64(s.alloc_bytes), allocVar: float64(s.alloc_var),
				frees: float64(s.frees), freeBytes: float64(s.free_bytes), freeVar: float64(s.free_var),
			},
			stale: s.stale != 0,
		}
		f(&one)
	}
}

// ranges returns the parts of sampled mappings that are still mapped, by address.
func ranges() (all []mappedRange) {
	some := make([]C.struct_cmem_range, 128)
	for from := uintptr(0); ; {
		n := int(C.cmem_ranges(C.uintptr_t(from), unsafe.SliceData(some), C.size_t(len(some))))
		for _, r := range some[:n] {
			all = append(all, mappedRange{uint64(r.from), uint64(r.to), uintptr(unsafe.Pointer(r.stack)), float64(r.weight)})
			from = uintptr(r.from) + 1
		}
		if n < len(some) {
			return all
		}
	}
}

// closed returns a number that changes when a library is unloaded.
func closed() uint32 { return uint32(C.cmem_unloaded()) }

// initial reports whether the address is in a file that was mapped when the program began. Such a
// file is never unmapped.
func initial(pc uintptr) bool { return C.cmem_initial(C.uintptr_t(pc)) != 0 }

// fullTrace is the size of each recording outside of tests.
var fullTrace = traceSize{C.cmem_trace_events, C.cmem_trace_patience}

// traceBegin begins to write events of all calls. What is left of an earlier recording is removed.
func traceBegin(size traceSize) (*fht.Ring, error) {
	if t := &C.cmem_tracing; t.ring != nil {
		ring, events := traceRing(), make([]uint64, 2*4096)
		for ring.Take(events) > 0 {
		}
		// A thread that never wrote its event would leave a gap for ever.
		for atomic.LoadUint64(ring.Read) < atomic.LoadUint64(ring.Head) {
			atomic.AddUint64(ring.Read, 1)
			for ring.Take(events) > 0 {
			}
		}
	}
	if C.cmem_trace_begin(C.uint64_t(size.events), C.uint32_t(size.patience)) == 0 {
		return nil, errors.New("cmem: Record: there is no memory for 64 MiB of events")
	}
	return traceRing(), nil
}

// traceRing returns the ring of events, which C never frees.
func traceRing() *fht.Ring {
	t := &C.cmem_tracing
	return &fht.Ring{
		Words: unsafe.Slice((*uint64)(unsafe.Pointer(t.ring)), 2*int(t.size)),
		Head:  (*uint64)(unsafe.Pointer(&t.head)),
		Read:  (*uint64)(unsafe.Pointer(&t.read)),
		Over:  (*uint64)(unsafe.Pointer(&t.over)),
	}
}

// traceEnd ends the writing of events, and returns how many threads have written one.
func traceEnd() uint64 {
	C.cmem_trace_end()
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&C.cmem_tracing.threads)))
}
