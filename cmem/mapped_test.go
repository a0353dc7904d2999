//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/procfs"
	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"
)

const accessible = syscall.PROT_READ | syscall.PROT_WRITE

var page = os.Getpagesize()

// mapped returns the sum of what all libraries have mapped.
func mapped(t *testing.T) (sum MappedLibrary) {
	t.Helper()
	all, err := Mapped()
	testcall.Must(t, err)
	for _, l := range all {
		sum.Mapped += l.Mapped
		sum.Accessible += l.Accessible
		sum.Resident += l.Resident
	}
	return sum
}

// TestMapped maps memory, uses a part of it, and reserves more.
func TestMapped(t *testing.T) {
	withRate(t, 1)
	const n, reserved = 16 << 20, 1 << 30
	before, counts := mapped(t), ReadStats()
	p := cwork.Map(2, nil, n, accessible, 0)
	q := cwork.Map(2, nil, reserved, syscall.PROT_NONE, 0)
	j := cwork.MapJemalloc(n)
	if p == nil || q == nil || j == nil {
		t.Fatal("no memory")
	}
	for at := 0; at < n/4; at += page {
		unsafe.Slice((*byte)(p), n)[at] = 1
	}
	after, now := mapped(t), ReadStats()
	want := MappedLibrary{Mapped: 2*n + reserved, Accessible: 2 * n, Resident: n / 4}
	got := MappedLibrary{Mapped: after.Mapped - before.Mapped, Accessible: after.Accessible - before.Accessible, Resident: after.Resident - before.Resident}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if now.Mmaps-counts.Mmaps != 3 || now.Mapped-counts.Mapped != want.Mapped || now.MappedError != counts.MappedError {
		t.Errorf("%+v, before %+v", now, counts)
	}
	all, err := Mapped()
	testcall.Must(t, err)
	profiled, err := MappedProfile()
	testcall.Must(t, err)
	// go test leaves the symbols out.
	symbols := slices.ContainsFunc(profiled.Sample, func(s *profile.Sample) bool {
		return s.Location[0].Line[0].Function.Name == "cwork_je_pages_map"
	})
	if symbols && !slices.ContainsFunc(all, func(l MappedLibrary) bool {
		return l.Allocator == "jemalloc (cwork_je_)" && l.Mapped == n && l.Name == filepath.Base(os.Args[0])
	}) {
		t.Errorf("no library has the allocator: %+v", all)
	}
	has := func(value int, want int64) bool {
		return slices.ContainsFunc(profiled.Sample, func(s *profile.Sample) bool {
			return s.Value[value] == want && hasFunction(s, "cwork_map") && hasFunction(s, "cmem.TestMapped")
		})
	}
	if !has(2, n+reserved) && !(has(2, n) && has(2, reserved)) || !has(3, n/4) {
		t.Errorf("the profile has not the mappings of this test: %v", profiled)
	}
	for _, m := range []struct {
		p unsafe.Pointer
		n int
	}{{p, n}, {q, reserved}, {j, n}} {
		if !cwork.Unmap(m.p, m.n) {
			t.Error("it was not unmapped")
		}
	}
	if end := ReadStats(); end.Mapped != counts.Mapped || end.Munmaps-counts.Munmaps != 3 {
		t.Errorf("%+v are left, before %+v", end, counts)
	}
}

func hasFunction(s *profile.Sample, name string) bool {
	return slices.ContainsFunc(s.Location, func(l *profile.Location) bool {
		return slices.ContainsFunc(l.Line, func(line profile.Line) bool { return strings.Contains(line.Function.Name, name) })
	})
}

// TestMappedByOthers has the C library map memory for malloc and for threads, and the runtime of Go for its heap.
func TestMappedByOthers(t *testing.T) {
	withRate(t, 1)
	before := ReadStats()
	p := cwork.Alloc(0, 64<<20) // above the threshold from which malloc maps a block
	cwork.Threads(8, 10, 100)
	cwork.Free(p)
	var kept [][]byte
	for range 40 {
		kept = append(kept, make([]byte, 8<<20)) // arenas of 64 MiB
	}
	runtime.KeepAlive(kept)
	after := ReadStats()
	if after.Mallocs-before.Mallocs < 81 {
		t.Fatalf("%d blocks of malloc", after.Mallocs-before.Mallocs)
	}
	if after.Mmaps != before.Mmaps || after.Munmaps != before.Munmaps || after.Mapped != before.Mapped {
		t.Errorf("%+v, before %+v", after, before)
	}
}

// TestMappedEstimate has mappings of all sizes, of which few are sampled.
func TestMappedEstimate(t *testing.T) {
	withRate(t, DefaultRate)
	before := ReadStats()
	type mapping struct {
		p unsafe.Pointer
		n int
	}
	var all []mapping
	var sum int64
	sizes := make([]uintptr, 3000)
	for i := range sizes {
		sizes[i] = uintptr(page) << rand.IntN(10)
	}
	for i, p := range cwork.MapAll(sizes) {
		if p == nil {
			t.Fatal("no memory")
		}
		all = append(all, mapping{p, int(sizes[i])})
		sum += int64(sizes[i])
	}
	check := func() {
		now := ReadStats()
		got, deviation := now.Mapped-before.Mapped, math.Hypot(float64(now.MappedError), float64(before.MappedError))
		if deviation < 1 || math.Abs(float64(got-sum)) > 6*deviation {
			t.Errorf("%d bytes are mapped ± %.0f, want %d", got, deviation, sum)
		}
	}
	check()
	for i := range all { // the second half of each, and then the first
		half := all[i].n / 2 / page * page
		if half > 0 && !cwork.Unmap(unsafe.Add(all[i].p, half), all[i].n-half) {
			t.Fatal("it was not unmapped")
		}
		if half > 0 {
			sum -= int64(all[i].n - half)
			all[i].n = half
		}
	}
	check()
	for _, m := range all {
		cwork.Unmap(m.p, m.n)
	}
	if now := ReadStats(); now.Mapped > before.Mapped+1 || now.MappedError > before.MappedError+int64(page) { // of squares, the last digits are lost
		t.Errorf("%d bytes ± %d are left", now.Mapped-before.Mapped, now.MappedError)
	}
}

// TestMappedModel makes random changes, and compares which stack has which page with a model, and what may be done
// with each page with what the system says.
func TestMappedModel(t *testing.T) {
	withRate(t, 1)
	const steps, longest = 800, 40
	stacks := 6
	if !unwinds() {
		stacks = 1 // the others differ in functions of C
	}
	type owner struct{ stack, prot int }
	model := map[uintptr]owner{} // by page
	ids := map[uintptr]int{}     // the stack that a site is of
	size := uintptr(page)
	set := func(at uintptr, pages int, o owner) {
		for k := range pages {
			model[at+uintptr(k)*size] = o
		}
	}
	// some returns pages of one mapping that lie side by side.
	some := func() (at uintptr, pages int) {
		for at = range model {
			break
		}
		o := model[at]
		for most := 1 + rand.IntN(longest); pages < most && model[at+uintptr(pages)*size] == o; pages++ {
		}
		return at, pages
	}
	pointer := func(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
	prots := []int{syscall.PROT_NONE, syscall.PROT_READ, accessible}
	others := map[uintptr]bool{} // sites of other tests
	for _, r := range ranges() {
		others[r.stack] = true
	}
	refused := 0
	for step := range steps {
		made := owner{1 + rand.IntN(stacks), prots[rand.IntN(len(prots))]}
		at, n := uintptr(0), 1+rand.IntN(longest)
		kind := rand.IntN(6)
		if len(model) == 0 || len(model) < 100 && kind > 2 {
			kind = 0
		}
		switch kind {
		case 0: // anywhere
			at = uintptr(cwork.Map(made.stack, nil, n*page, made.prot, 0))
			set(at, n, made)
		case 1: // over others
			at, n = some()
			if got := uintptr(cwork.Map(made.stack, pointer(at), n*page, made.prot, syscall.MAP_FIXED)); got != at {
				t.Fatalf("it is at %#x instead of %#x", got, at)
			}
			set(at, n, made)
		case 2, 3:
			at, n = some()
			if !cwork.Unmap(pointer(at), n*page) {
				t.Fatal("it was not unmapped")
			}
			for k := range n {
				delete(model, at+uintptr(k)*size)
			}
			at = 0
		default: // longer or shorter, perhaps elsewhere
			old, was := some()
			was = 1 + rand.IntN(was)
			o := model[old]
			var to unsafe.Pointer
			if kind == 5 {
				if to = cwork.Map(made.stack, nil, n*page, made.prot, 0); to == nil {
					t.Fatal("no memory")
				}
			}
			moved := uintptr(cwork.Remap(made.stack, pointer(old), was*page, n*page, to))
			if moved == 0 { // what was moved before may be several mappings for the system, which it refuses
				refused++
				if to != nil {
					cwork.Unmap(to, n*page) // perhaps it is gone
				}
				break
			}
			for k := range was {
				delete(model, old+uintptr(k)*size)
			}
			set(moved, min(n, was), o)
			if n > was {
				// What is new has the protection of what was there, and a stack of mremap.
				set(moved+uintptr(was)*size, n-was, owner{stacks + made.stack, o.prot})
				at = moved + uintptr(was)*size
			}
		}
		owners := map[uintptr]uintptr{}
		for _, r := range ranges() {
			if others[r.stack] {
				continue
			}
			if r.weight != 1 {
				t.Fatalf("a weight of %v", r.weight)
			}
			for p := uintptr(r.from); p < uintptr(r.to); p += size {
				owners[p] = r.stack
			}
		}
		if len(owners) != len(model) {
			t.Fatalf("step %d, kind %d: %d pages, want %d", step, kind, len(owners), len(model))
		}
		if at != 0 {
			if _, known := ids[owners[at]]; !known {
				ids[owners[at]] = model[at].stack
			}
		}
		for p, o := range model {
			if id, ok := ids[owners[p]]; !ok || id != o.stack {
				t.Fatalf("step %d, kind %d: page %#x is of stack %d, want %d", step, kind, p, id, o.stack)
			}
		}
		if step%100 == 0 {
			checkProtection(t, func(each func(at uintptr, prot int)) {
				for p, o := range model {
					each(p, o.prot)
				}
			})
		}
	}
	if refused > steps/4 {
		t.Errorf("%d of %d steps were refused", refused, steps)
	}
	for p := range model {
		cwork.Unmap(pointer(p), page)
	}
	for _, r := range ranges() {
		if !others[r.stack] {
			t.Fatalf("%#x to %#x is left", r.from, r.to)
		}
	}
}

// checkProtection compares what may be done with pages with /proc/self/maps.
func checkProtection(t *testing.T, pages func(each func(at uintptr, prot int))) {
	t.Helper()
	f, err := os.Open("/proc/self/maps")
	testcall.Must(t, err)
	defer f.Close()
	var all []procfs.Mapping
	if err := procfs.Mappings(f, func(m procfs.Mapping) bool { all = append(all, m); return true }); err != nil {
		t.Fatal(err)
	}
	pages(func(at uintptr, prot int) {
		i := slices.IndexFunc(all, func(m procfs.Mapping) bool { return uint64(at) >= m.Start && uint64(at) < m.End })
		if i < 0 {
			t.Fatalf("page %#x is not mapped", at)
		}
		if m := all[i]; m.Read != (prot&syscall.PROT_READ != 0) || m.Write != (prot&syscall.PROT_WRITE != 0) {
			t.Fatalf("page %#x has %+v, want %d", at, m, prot)
		}
	})
}

// TestMappedFails has calls that fail: what is there stays.
func TestMappedFails(t *testing.T) {
	withRate(t, 1)
	p := cwork.Map(0, nil, 4*page, accessible, 0)
	before := ReadStats()
	if cwork.Unmap(unsafe.Add(p, 1), page) || cwork.Remap(0, p, 4*page, math.MaxInt&^(page-1), nil) != nil ||
		cwork.Map(0, nil, 0, accessible, 0) != nil || cwork.Remap(0, p, page, page, unsafe.Add(p, 1)) != nil {
		t.Error("a wrong call has not failed")
	}
	if after := ReadStats(); after.Mapped != before.Mapped || after.Mmaps != before.Mmaps || after.Munmaps != before.Munmaps {
		t.Errorf("%+v, before %+v", after, before)
	}
	cwork.Unmap(p, 4*page)
}

// TestUnixMmap maps memory by package unix, which is counted from CountUnixMmap on.
func TestUnixMmap(t *testing.T) {
	withRate(t, 1)
	const n = 16 << 20
	before := mapped(t).Mapped
	old, err := unix.Mmap(-1, 0, n, accessible, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil || mapped(t).Mapped != before {
		t.Fatalf("%v; what Go has mapped is counted before", err)
	}
	for _, word := range []uintptr{0, 8, 1 << 20, 1<<63 + 8} { // no func
		if name := functionIn(unsafe.Pointer(&word)); name != "" {
			t.Errorf("%#x is taken for %s", word, name)
		}
	}
	mmap, munmap := unixMapper.mmap, unixMapper.munmap
	defer func() { unixMapper.mmap, unixMapper.munmap = mmap, munmap }()
	unixMapper.munmap = func(uintptr, uintptr) error { return nil }
	if CountUnixMmap() == nil {
		t.Error("a variable that is not as it is known was changed")
	}
	unixMapper.munmap = munmap
	testcall.Must(t, CountUnixMmap())
	if CountUnixMmap() == nil {
		t.Error("it was changed twice")
	}
	b, err := unix.Mmap(-1, 0, n, accessible, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil || mapped(t).Mapped != before+n {
		t.Fatalf("%v; %d bytes are counted, want %d", err, mapped(t).Mapped-before, n)
	}
	p, err := MappedProfile()
	testcall.Must(t, err)
	if !slices.ContainsFunc(p.Sample, func(s *profile.Sample) bool {
		return slices.ContainsFunc(s.Location, func(l *profile.Location) bool {
			return strings.HasSuffix(l.Line[len(l.Line)-1].Function.Name, "cmem.TestUnixMmap")
		})
	}) {
		t.Error("no stack has this test")
	}
	if _, err := unix.Mmap(-1, 0, 1<<60, accessible, unix.MAP_PRIVATE|unix.MAP_ANON); err != unix.ENOMEM {
		t.Errorf("too much: %v", err)
	}
	for _, m := range [][]byte{old, b} { // the first was mapped before
		testcall.Want(t, unix.Munmap(m))
	}
	if n := mapped(t).Mapped - before; n != 0 {
		t.Errorf("%d bytes are counted in the end", n)
	}
}
