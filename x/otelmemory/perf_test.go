//go:build linux && cgo && (amd64 || arm64)

package otelmemory

import (
	"encoding/binary"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/inspect"
)

// An event is the beginning of struct perf_event_attr of the kernel, as far as a uprobe needs it.
type event struct {
	kind, size uint32
	config     uint64 // the place of the semaphore in the file, shifted left by 32
	period     uint64 // 0, or between two records
	records    uint64 // what a record has
	_          uint64
	bits       uint64
	_          [2]uint32
	path       uint64 // of the file
	offset     uint64 // of the instruction in the file
	_          uint64
	registers  uint64 // that a record has
	_          [2]uint32
}

const (
	onlyUser     = 1<<5 | 1<<6 // exclude_kernel and exclude_hv
	hasRegisters = 1 << 12     // PERF_SAMPLE_REGS_USER
)

// arguments are the registers of the first three arguments by their numbers in perf, and in which
// order these are in a record.
var arguments = map[string]struct {
	mask  uint64
	order [3]int
}{
	"amd64": {1<<5 | 1<<4 | 1<<3, [3]int{2, 1, 0}}, // DI, SI, DX
	"arm64": {1<<0 | 1<<1 | 1<<2, [3]int{0, 1, 2}},
}[runtime.GOARCH]

// attach has the kernel trace a probe in this thread. It returns a file of the event, or why the
// kernel refuses. The kernel counts, or writes records with the arguments if records is set.
func attach(t *testing.T, name string, records bool) (file int, refusal string) {
	t.Helper()
	text, err := os.ReadFile("/sys/bus/event_source/devices/uprobe/type")
	if err != nil {
		return -1, err.Error()
	}
	kind, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	notes, f := readNotes(t)
	for _, n := range notes {
		if n.provider != "otel_memory" || n.name != name {
			continue
		}
		_, pc := at(t, f, n.pc, 1, 0)
		_, semaphore := at(t, f, n.semaphore, 2, 0)
		path, err := syscall.BytePtrFromString(program(t))
		if err != nil {
			t.Fatal(err)
		}
		e := event{
			kind: uint32(kind), config: semaphore << 32, bits: onlyUser,
			path: uint64(uintptr(unsafe.Pointer(path))), offset: pc,
		}
		if records {
			e.period, e.records, e.registers = 1, hasRegisters, arguments.mask
		}
		e.size = uint32(unsafe.Sizeof(e))
		// The thread is this one, the processor any, and there is no group and no flag.
		fd, _, errno := syscall.Syscall6(syscall.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&e)), 0, ^uintptr(0), ^uintptr(0), 0, 0)
		runtime.KeepAlive(path)
		if errno != 0 {
			return -1, errno.Error()
		}
		t.Cleanup(func() { syscall.Close(int(fd)) })
		return int(fd), ""
	}
	t.Fatalf("no probe %s", name)
	return -1, ""
}

// count reads how often the kernel has seen the probe.
func count(t *testing.T, file int) int {
	var b [8]byte
	if _, err := syscall.Read(file, b[:]); err != nil {
		t.Fatal(err)
	}
	return int(binary.NativeEndian.Uint64(b[:]))
}

// ring has the kernel write the records of an event, and returns a function that reads them: the
// first three arguments of each.
func ring(t *testing.T, file int) (read func() [][3]uint64) {
	page := os.Getpagesize()
	b, err := syscall.Mmap(file, 0, 5*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(b) })
	return func() (all [][3]uint64) {
		const head = 1024 // where in the first page the kernel says how much it has written
		data := b[page:][:atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[head])))]
		for len(data) > 0 {
			const sample = 9
			if kind := binary.NativeEndian.Uint32(data); kind != sample {
				t.Fatalf("a record of type %d", kind)
			}
			var a [3]uint64
			for i, at := range arguments.order {
				a[i] = binary.NativeEndian.Uint64(data[16+8*at:]) // behind the header and the ABI
			}
			all = append(all, a)
			data = data[binary.NativeEndian.Uint16(data[6:]):]
		}
		return all
	}
}

// TestTracer has the kernel trace the probes, where it allows that. It counts itself in the
// semaphores, and counts each sample.
func TestTracer(t *testing.T) {
	runtime.LockOSThread() // which is what the kernel traces
	defer runtime.UnlockOSThread()
	defer inspect.SetRate(inspect.SetRate(1))
	allocs, refusal := attach(t, "alloc", false)
	if refusal != "" {
		t.Logf("the kernel allows no tracer here: %s", refusal)
		return
	}
	if alloc, free := Attached(); !alloc || free {
		t.Errorf("with a tracer of alloc, attached are %v and %v", alloc, free)
	}
	frees, refusal := attach(t, "free", false)
	if refusal != "" {
		t.Fatal(refusal)
	}
	if alloc, free := Attached(); !alloc || !free {
		t.Errorf("with both tracers, attached are %v and %v", alloc, free)
	}
	r, h := record(t), newHeap(t)
	defer h.DestroyAll()
	for i := range 1000 {
		p := h.Malloc(1 + i)
		if i%3 == 0 {
			h.Free(p)
		}
	}
	seen, freed := count(t, allocs), count(t, frees)
	if a, f, _, _ := r.read(t); a != 1000 || f != 334 || seen != a || freed != f {
		t.Errorf("%d calls of alloc and %d of free; the kernel has counted %d and %d", a, f, seen, freed)
	}
}

// TestTracedArguments has the kernel read the arguments, where it allows that.
func TestTracedArguments(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const rate = 100
	defer inspect.SetRate(inspect.SetRate(rate))
	allocs, refusal := attach(t, "alloc", true)
	if refusal != "" {
		t.Logf("the kernel allows no tracer here: %s", refusal)
		return
	}
	frees, refusal := attach(t, "free", true)
	if refusal != "" {
		t.Fatal(refusal)
	}
	readAllocs, readFrees := ring(t, allocs), ring(t, frees)
	_, h := record(t), newHeap(t)
	defer h.DestroyAll()
	var wantAllocs, wantFrees [][3]uint64
	for _, size := range []int{5000, 70_000, 300_000} { // which are sampled, but for one time in 10²¹
		p := h.Malloc(size)
		n := uint64(h.UsableSize(p))
		wantAllocs = append(wantAllocs, [3]uint64{uint64(uintptr(p)), n, n})
		wantFrees = append(wantFrees, [3]uint64{uint64(uintptr(p))})
		h.Free(p)
	}
	gotFrees := readFrees()
	for i := range gotFrees {
		gotFrees[i][1], gotFrees[i][2] = 0, 0 // it has one argument
	}
	if got := readAllocs(); !slices.Equal(got, wantAllocs) || !slices.Equal(gotFrees, wantFrees) {
		t.Errorf("the kernel has seen alloc%x and free%x, want %x and %x", got, gotFrees, wantAllocs, wantFrees)
	}
}
