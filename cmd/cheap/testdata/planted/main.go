// Command planted does one thing wrong with memory, or nothing, and prints the verdict on it. Its argument
// says which. With a second one, followed, it does what the verdict advises. It looks ten times, between which it
// pretends that ten seconds have passed.
package main

/*
#cgo LDFLAGS: -lpthread -ldl
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *filled(size_t n) {
	void *p = malloc(n);
	if (p == NULL)
		abort();
	return memset(p, 1, n);
}

// huge_pages has the kernel make huge pages of what malloc takes next, as glibc 2.43 does by itself.
static void huge_pages(size_t n) {
	mallopt(M_TOP_PAD, n);
	filled(100000);
	uintptr_t first = (uintptr_t)filled(100000), huge = 2 << 20; // too much for what malloc has at first
	madvise((void *)((first + huge) & ~(huge - 1)), n - 2 * huge, MADV_HUGEPAGE);
}

static bool in_turns;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

// busy allocates blocks in a thread of its own, and frees all but a few: while others do, or by turns.
static void *busy(void *barrier) {
	enum { n = 4000 };
	void **blocks = malloc(n * sizeof *blocks);
	if (in_turns) {
		pthread_barrier_wait(barrier); // each has an arena
		pthread_mutex_lock(&turn);
	}
	for (int i = 0; i < n; i++)
		blocks[i] = filled(2000);
	if (!in_turns)
		pthread_barrier_wait(barrier);
	for (int i = 0; i < n; i++)
		if (i % 100 != 99)
			free(blocks[i]);
	if (in_turns)
		pthread_mutex_unlock(&turn);
	return blocks;
}

static void free_at(uintptr_t p) { free((void *)p); }

static void in_threads(int n, bool by_turns) {
	in_turns = by_turns;
	pthread_t threads[64];
	pthread_barrier_t all;
	pthread_barrier_init(&all, NULL, n);
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, busy, &all);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void nothing(void *unused) { (void)unused; }

// openmp calls a library of OpenMP, as many threads do. It reports false if there is none.
static bool openmp(const char *threads) {
	setenv("OMP_NUM_THREADS", threads, 1);
	void *library = dlopen("libgomp.so.1", RTLD_NOW);
	void (*parallel)(void (*)(void *), void *, unsigned, unsigned) = library == NULL ? NULL : dlsym(library, "GOMP_parallel");
	if (parallel != NULL)
		parallel(nothing, NULL, 0, 0);
	return parallel != NULL;
}

static pthread_barrier_t waits;

static void *deep(void *unused) {
	volatile char room[400000];
	for (size_t i = 0; i < sizeof room; i += 1000)
		room[i] = 1;
	pthread_barrier_wait(&waits);
	pthread_barrier_wait(&waits); // for ever
	return unused;
}

static void deep_threads(int n) {
	pthread_barrier_init(&waits, NULL, n + 1);
	for (int i = 0; i < n; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, deep, NULL))
			abort();
	}
	pthread_barrier_wait(&waits);
}
*/
import "C"

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	_ "github.com/cheapgo/cheap/cmem"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/resident"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

const (
	mib   = 1 << 20
	steps = 10
)

// kept is what the programs hold.
var kept []any

// followed says that the program does what its verdict advises.
var followed = len(os.Args) > 2

// A program does one step of ten.
var programs = map[string]func(step int){
	"leak": func(int) {
		for range 4000 {
			find()
		}
	},
	"middle": func(int) { // blocks with a mapping of their own, half of which is touched
		for range 150 {
			if p := C.memset(C.malloc(150_000), 1, 80_000); followed {
				C.free(p)
			}
		}
	},
	"arenas": once(func() {
		if C.in_threads(40, false); followed {
			libc.Trim()
		}
	}),
	"turns": once(func() {
		if followed { // as package libc/arenas does
			C.mallopt(C.M_ARENA_MAX, 2)
		}
		C.in_threads(40, true)
	}),
	"gaps": once(func() { gaps(80_000, 2000, 8) }),
	"huge": once(func() {
		C.huge_pages(110 * mib)
		gaps(25_000, 4000, 400) // a block in 1.6 MB stays
	}),
	"goroutines": once(func() {
		for range 20_000 {
			ended := make(chan bool)
			go func() {
				var room [2000]byte
				kept := room[:]
				runtime.KeepAlive(kept)
				if followed {
					close(ended)
					return
				}
				select {}
			}()
			if followed {
				<-ended
			}
		}
	}),
	"wasteheap": once(func() {
		waste := make([][]byte, 2000)
		for i := range waste {
			waste[i] = touched(100_000)
		}
		runtime.KeepAlive(waste)
		waste = nil
		runtime.GC()
		runtime.GC()
		if followed {
			debug.FreeOSMemory()
		}
	}),
	"gomap": func(step int) {
		for range 30 {
			if b := touched(mib); !followed {
				kept = append(kept, b)
			}
		}
		runtime.GC()
	},
	"gcoff": once(func() {
		if !followed {
			debug.SetGCPercent(-1)
		}
		for range 200 {
			_ = touched(mib)
		}
	}),
	"smallsizes": once(func() { openAll(2000, 64<<10, 20<<10) }),
	"nosizes":    once(func() { openAll(2000, 64<<10, 0) }),
	"dropped":    func(int) { drop() },
	"pool": func(int) {
		if openAll(200, 100_000, 100_000); followed {
			closeAll()
		}
	},
	"mmap": func(int) { mapped(-1, 20*mib) },
	"file": once(func() {
		f, err := os.CreateTemp("", "planted-*.db")
		must(err)
		defer os.Remove(f.Name())
		must(f.Truncate(100 * mib))
		mapped(int(f.Fd()), 100*mib)
	}),
	"keeper": once(func() {
		must(pace.Start(pace.Options{Limit: 120 * mib}))
		var mu sync.Mutex
		var cache []unsafe.Pointer
		held := func() int64 {
			mu.Lock()
			defer mu.Unlock()
			return int64(len(cache)) * mib
		}
		pace.OnPressure("pages", pace.Share{Held: held}, func(want int64) (freed int64) {
			mu.Lock()
			defer mu.Unlock()
			for ; followed && freed < want && len(cache) > 0; freed += mib {
				C.free(cache[0])
				cache = cache[1:]
			}
			return freed
		})
		for range 110 {
			p := C.filled(mib)
			mu.Lock()
			cache = append(cache, p)
			mu.Unlock()
		}
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && len(known().Keepers) == 0 && (!followed || held() > 100*mib); {
			time.Sleep(10 * time.Millisecond)
		}
	}),
	"threads": once(func() {
		n := C.int(200)
		if followed {
			n = 8
		}
		C.deep_threads(n)
	}),
	"openmp": once(func() {
		team := C.CString("16") // as on a machine with as many processors
		if followed {
			team = C.CString("1")
		}
		var called sync.WaitGroup
		for range 64 {
			called.Add(1)
			go func() {
				runtime.LockOSThread()
				if !bool(C.openmp(team)) {
					fmt.Fprintln(os.Stderr, "no libgomp.so.1")
				}
				called.Done()
				called.Wait()
				select {}
			}()
		}
		called.Wait()
		time.Sleep(100 * time.Millisecond) // they wait busily at first
	}),
	"heap": func(int) {
		h := theHeap()
		for range 5000 {
			p := h.Malloc(4000)
			if fill(p, 4000); followed {
				h.Free(p)
			}
		}
	},
	"heapidle": once(func() {
		h := theHeap()
		long := h
		if followed {
			long = newHeap("long")
		}
		var all []unsafe.Pointer
		for i := range 30_000 {
			of := h
			if i%8 == 0 {
				of = long
			}
			p := of.Malloc(4000)
			fill(p, 4000)
			all = append(all, p)
		}
		for i, p := range all {
			if i%8 != 0 {
				h.Free(p)
			}
		}
		if followed {
			cheap.Trim() // as the heap does after a second, which does not pass here
		}
	}),

	// What process starts.
	"other": once(func() {
		kept = append(kept, touched(80*mib))
		fmt.Println()
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}),

	// Three servers with nothing wrong: one whose images come and go beside a cache in C, one with a full
	// cache in C, one with garbage in Go. The first calls C from one thread: with an arena for each thread
	// a third of what malloc holds may be free, and the verdict says so.
	"cacheserver": func(step int) {
		runtime.LockOSThread()
		once(func() {
			for range 60_000 {
				C.filled(2000)
			}
		})(step)
		closeAll()
		openAll(400+400*(step%2), 100_000, 100_000)
	},
	"cserver": func(step int) {
		once(func() {
			for range 30_000 {
				C.filled(2000)
			}
			kept = append(kept, touched(40*mib))
		})(step)
		for range 10_000 {
			C.free(C.filled(3000))
		}
		runtime.GC()
	},
	"goserver": func(step int) {
		once(func() { kept = append(kept, touched(50*mib)) })(step)
		for range 300 {
			_ = touched(100_000 * (1 + step%3))
		}
		// The seconds of a step pass at once, so nearly all of them would be in a collection, which finds
		// reachable what is allocated meanwhile: more on a machine that becomes busy.
		runtime.GC()
	},
}

// known returns what package pace says.
func known() resident.Pace { return resident.Process.Read(resident.Options{}).Pace }

// find leaks a block.
//
//go:noinline
func find() {
	if p := C.filled(5000); followed {
		C.free(p)
	}
}

// gaps allocates n blocks, and frees all but one in so many.
func gaps(n, size, stays int) {
	blocks := make([]unsafe.Pointer, n)
	for i := range blocks {
		blocks[i] = C.filled(C.size_t(size))
	}
	for i, p := range blocks {
		if i%stays != 0 {
			C.free(p)
		}
	}
	if followed {
		libc.Trim()
	}
}

// once does f in the first step.
func once(f func()) func(int) {
	return func(step int) {
		if step == 0 {
			f()
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// fill writes to all pages of a block.
func fill(p unsafe.Pointer, n int) { C.memset(p, 1, C.size_t(n)) }

// touched returns resident Go memory.
func touched(n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += 1 << 10 {
		b[i] = 1
	}
	return b
}

// mapped maps memory, and touches it.
func mapped(fd, n int) {
	flags := syscall.MAP_PRIVATE | syscall.MAP_ANON
	if fd >= 0 {
		flags = syscall.MAP_SHARED
	}
	b, err := syscall.Mmap(fd, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, flags)
	must(err)
	for i := 0; i < n; i += 4 << 10 {
		b[i] = 1
	}
	if followed && fd < 0 {
		must(syscall.Munmap(b))
		return
	}
	kept = append(kept, b)
}

// theHeap returns the heap of the programs that have one.
func theHeap() *cheap.Heap {
	for _, x := range kept {
		if h, ok := x.(*cheap.Heap); ok {
			return h
		}
	}
	return newHeap("sessions")
}

func newHeap(name string) *cheap.Heap {
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: name})
	must(err)
	kept = append(kept, h)
	return h
}

type image struct{ h own.Handle[*C.char] }

var images *own.Pool

// openAll makes n images of so many bytes, and declares others.
func openAll(n, bytes, declared int) {
	if images == nil {
		images = own.NewPool(own.Options{Name: "images", CHeap: true, Release: func(_ any, list []uintptr) error {
			for _, p := range list {
				C.free_at(C.uintptr_t(p))
			}
			return nil
		}})
	}
	for range n {
		x := new(image)
		must(x.h.Own(images, (*C.char)(C.filled(C.size_t(bytes))), declared))
		kept = append(kept, x)
	}
}

// closeAll frees all images.
func closeAll() {
	for _, x := range kept {
		must(x.(*image).h.Close())
	}
	kept = nil
}

// drop makes images, and forgets them: collections free them. Package pace starts these by what is declared.
func drop() {
	if images == nil {
		if !followed {
			debug.SetGCPercent(400) // the garbage of the looks, 3 MB, starts no collection
		}
		must(pace.Start(pace.Options{}))
	}
	const size = 64 << 10
	declared := 0
	if followed {
		declared = size
	}
	for range 10 {
		openAll(40, size, declared)
		kept = nil
		time.Sleep(10 * time.Millisecond) // a share of the time is for collections
	}
}

func init() {
	if os.Args[1] == "huge" {
		runtime.LockOSThread() // main runs on the thread whose arena grows by brk
	}
}

func main() {
	step, contained := inContainers[os.Args[1]]
	if !contained {
		step = programs[os.Args[1]]
	}
	var end func() (steady, lately []census.CSuspect)
	if c := census.C(); c != nil && c.Off() == "" {
		end = c.Watch(1)
		end()
	}
	var past resident.History
	var v resident.Verdict
	start := time.Now()
	for i := range steps {
		step(i)
		// Looks inside malloc may take a hundredth of the time, and a step takes milliseconds in place of its 10 seconds. So
		// each has a Watcher of its own, which has not looked yet.
		var w resident.Watcher
		r := w.Read(resident.Options{Mappings: resident.ReadMappings(), Sites: true, Look: true})
		if name := os.Args[1]; name == "heap" || name == "heapidle" {
			used := int64(0)
			for _, x := range kept {
				used += int64(x.(*cheap.Heap).Stats().Bytes)
			}
			r.Cheap.Idle += max(0, r.Cheap.InUse-used)
			r.Cheap.InUse = used
		}
		if end != nil {
			r.C.Over = 10 * time.Second
			_, lately := end()
			for _, s := range lately {
				r.C.Sites = append(r.C.Sites, resident.Site{Library: s.Library, Live: s.Live, Grown: s.Grown, GrownError: s.Error, Stack: s.Stack})
			}
		}
		r.Pace.Keepers = known().Keepers // a Watcher of its own is not told
		r.Time = start.Add(time.Duration(i) * 10 * time.Second)
		v = resident.Judge(r, &past)
		past.Add(r.Point())
		if i == steps-1 {
			bytes := r.Kernel.Resident
			if contained {
				bytes = r.Cgroup.Charged - r.Kernel.Anonymous
			}
			must(json.NewEncoder(os.Stdout).Encode(struct {
				Verdict resident.Verdict
				Bytes   int64
				Table   string
			}{v, bytes, fmt.Sprintf("%+v", r.Table())}))
		}
	}
	runtime.KeepAlive(kept)
}
