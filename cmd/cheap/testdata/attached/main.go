//go:build cgo && linux

// Command attached is what the tests attach to: a Go program that knows nothing of cheap. It does what its argument says
// until its input ends, and exits with 1 if anything went wrong.
package main

/*
#cgo LDFLAGS: -ldl -lpthread
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern void callBack(void);

static long bad, interrupted, calls;
static void wrong(int is) { if (is) __atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED); }

// storm takes blocks in each way, fills them, and looks whether they are as they were when it frees them.
static void storm(uint64_t seed, int rounds) {
	enum { most = 64 };
	unsigned char *p[most] = {0};
	size_t n[most] = {0};
	for (int i = 0; i < rounds; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		int k = seed >> 58;
		size_t size = 1 + (seed >> 40) % 3000;
		for (size_t b = 0; b < n[k]; b++) wrong(p[k][b] != (unsigned char)(k + n[k]));
		switch ((seed >> 32) % 6) {
		case 0: free(p[k]); p[k] = malloc(size); break;
		case 1: free(p[k]); p[k] = calloc(size, 1); for (size_t b = 0; b < size; b++) wrong(p[k][b] != 0); break;
		case 2: p[k] = realloc(p[k], size); break;
		case 3: free(p[k]); p[k] = aligned_alloc(64, (size + 63) & ~(size_t)63); wrong((uintptr_t)p[k] % 64); break;
		case 4: free(p[k]); void *q = 0; wrong(posix_memalign(&q, 4096, size)); p[k] = q; break;
		case 5: free(p[k]); p[k] = (unsigned char *)strdup("0123456789"); size = 11; break;
		}
		n[k] = size;
		memset(p[k], (unsigned char)(k + size), size);
	}
	for (int k = 0; k < most; k++) free(p[k]);
}
static void calls_back(void) { void *p = malloc(200); memset(p, 1, 200); callBack(); free(p); }
static void allocates(void) { void *p = malloc(3000); memset(p, 1, 3000); free(p); }
// A library that is unloaded afterwards calls what allocates.
static void passes(char *file) {
	void *l = dlopen(file, RTLD_NOW);
	void (*pass)(void (*)(void)) = l ? dlsym(l, "pass") : 0;
	wrong(!pass);
	for (int i = 0; pass && i < 20; i++) pass(allocates);
	if (l) dlclose(l);
}
static void *ended(void *p) { free(p); return malloc(50); }
static void threads(void) {
	pthread_t t;
	void *p;
	wrong(pthread_create(&t, 0, ended, malloc(100)));
	pthread_join(t, &p);
	free(p);
}
static void forks(void) {
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 1000; i++) free(malloc(i));
		_exit(0);
	}
	int status = 1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) ;
	wrong(status);
}

// Threads of C in calls of the system that end with EINTR where a thread is stopped and goes on.
static void *sleeps(void *how) {
	int e = epoll_create1(0);
	struct epoll_event event;
	struct timespec t = {0, 3000000};
	for (;;) {
		int r = how == 0 ? epoll_wait(e, &event, 1, 3) : how == (void *)1 ? nanosleep(&t, 0) : poll(0, 0, 3);
		if (r < 0 && errno == EINTR) __atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	}
	return 0;
}
static void sleepers(void) {
	pthread_t t;
	for (uintptr_t i = 0; i < 12; i++) pthread_create(&t, 0, sleeps, (void *)(i % 3));
}

static void *loads(void *file) { return dlopen(file, RTLD_NOW); }
static void load(char *file) { pthread_t t; wrong(pthread_create(&t, 0, loads, file)); }

static __attribute__((noinline)) void *maps(size_t n) { void *volatile p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); return p; }
static __attribute__((noinline)) void *planted(size_t n) { void *volatile p = malloc(n); return p; }
static long count(long *n) { return __atomic_load_n(n, __ATOMIC_RELAXED); }
static long how_bad(void) { return count(&bad); }
static long how_interrupted(void) { return count(&interrupted); }
*/
import "C"

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

//export callBack
func callBack() {
	C.free(C.malloc(100))
	garbage.Store(new([1000]byte))
}

var (
	garbage atomic.Pointer[[1000]byte]
	over    atomic.Bool
	all     sync.WaitGroup
)

// again has goroutines call a function until the end.
func again(goroutines int, f func(i uint64)) {
	for g := range goroutines {
		all.Go(func() {
			for i := uint64(g); !over.Load(); i += 1000 {
				f(i)
			}
		})
	}
}

func main() {
	input := bufio.NewReader(os.Stdin)
	var before []unsafe.Pointer
	switch os.Args[1] {
	case "storm":
		debug.SetGCPercent(1)
		runtime.SetCPUProfileRate(1000)
		pprof.StartCPUProfile(io.Discard)
		again(64, func(i uint64) { C.storm(C.uint64_t(i), 200) })
		again(4, func(uint64) { C.calls_back() })
		again(2, func(uint64) { C.threads() })
		again(1, func(uint64) { C.forks() })
		for _, file := range os.Args[2:] {
			file := C.CString(file)
			again(1, func(uint64) { C.passes(file) })
		}
		again(1, func(uint64) {
			if err := exec.Command("/bin/true").Run(); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		})
	case "calls": // nothing that sends signals
		C.sleepers()
		again(4, func(i uint64) { C.storm(C.uint64_t(i), 200) })
	case "leak":
		for range 1000 {
			before = append(before, C.malloc(5000))
		}
	}
	fmt.Println("ready")
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			break
		}
		word, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "load":
			C.load(C.CString(file))
		case "leak":
			leak(before)
			fmt.Println("leaked")
		case "exec":
			fmt.Println(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
		}
	}
	over.Store(true)
	all.Wait()
	pprof.StopCPUProfile()
	fmt.Println("bad", C.how_bad(), "interrupted", C.how_interrupted())
	if C.how_bad() != 0 || C.how_interrupted() != 0 {
		os.Exit(1)
	}
}

var kept []unsafe.Pointer

// leak allocates a million bytes, maps 16 MiB, and frees what was allocated before. The allocator has to map memory for a block.
func leak(before []unsafe.Pointer) {
	kept = append(kept, C.maps(16<<20))
	C.free(C.planted(32 << 20))
	for range 1000 {
		kept = append(kept, C.planted(1000))
	}
	for _, p := range before {
		C.free(p)
	}
}
