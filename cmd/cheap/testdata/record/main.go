//go:build cgo && linux

// Command record is what the tests of cheap record run: a Go program whose C code allocates.
package main

/*
#cgo LDFLAGS: -lpthread
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) void *leak(size_t n, int more) {
	void *volatile p = more ? leak(n, more - 1) : malloc(n);
	return p;
}
static void *pairs(void *n) {
	for (uintptr_t i = 0; i < (uintptr_t)n; i++) {
		void *volatile p = malloc(777);
		free(p);
	}
	return 0;
}
static void threads(int threads, uintptr_t n) {
	pthread_t t[16];
	for (int i = 0; i < threads; i++) pthread_create(&t[i], 0, pairs, (void *)n);
	for (int i = 0; i < threads; i++) pthread_join(t[i], 0);
}
static int forks(void) {
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 1000; i++) leak(100000, 0);
		pairs((void *)100000);
		_exit(0);
	}
	int status = 1;
	return waitpid(pid, &status, 0) != pid || status != 0;
}
static void stops(void) { abort(); }
*/
import "C"

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var kept []unsafe.Pointer

//go:noinline
func leaky() {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("tenant", "acme", "empty", "")))
	for range 10 {
		inlined(100_000)
	}
}

var more C.int // frames of C

func inlined(n int) { C.leak(C.size_t(n), more) }

// setLabels is for other code than the runtime's as well.
//
//go:linkname setLabels runtime/pprof.runtime_setProfLabel
func setLabels(unsafe.Pointer)

//go:noinline
func asks() {
	setLabels(unsafe.Pointer(&[]uintptr{1 << 12, 1, 1}[0])) // no such memory
	defer setLabels(nil)
	for range 20 {
		kept = append(kept, C.malloc(5000))
	}
	for range 100 {
		s := C.CString(strings.Repeat("x", 999))
		C.free(unsafe.Pointer(s))
	}
}

//go:noinline
func deep(n int, f func()) int {
	var room [64]byte
	if n == 0 {
		f()
		return len(room)
	}
	room[n%len(room)] = 1
	return deep(n-1, f) + int(room[0])
}

// hammer allocates in goroutines, half of them bound to their threads, and in threads of C,
// while children are forked and the collector runs.
func hammer() {
	debug.SetGCPercent(1)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if i%2 == 0 {
				runtime.LockOSThread()
			}
			for k := range 3000 {
				deep(k%200, func() {
					p := C.malloc(C.size_t(1000 + k))
					p = C.realloc(p, C.size_t(5000+i))
					C.free(p)
					s := C.CString("a string")
					C.free(unsafe.Pointer(s))
				})
			}
		})
	}
	all.Go(func() {
		for range 5 {
			C.threads(8, 4000)
		}
	})
	all.Go(func() {
		for range 5 {
			if C.forks() != 0 {
				os.Exit(1)
			}
		}
	})
	all.Wait()
}

func init() {
	if os.Args[1] == "second" {
		runtime.LockOSThread() // main runs on the first thread
	}
}

func main() {
	switch os.Args[1] {
	case "leak": // echoes its input, and ends with 3 without returning
		leaky()
		asks()
		fmt.Println(os.Args[2:])
		io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintln(os.Stderr, "on stderr")
		os.Exit(3)
	case "threads":
		C.threads(4, 100_000)
	case "fork":
		leaky()
		if C.forks() != 0 {
			os.Exit(1)
		}
	case "abort":
		leaky()
		C.stops()
	case "closes": // all files but three, and goes elsewhere
		for fd := 3; fd < 1000; fd++ {
			syscall.Close(fd)
		}
		os.Chdir("/")
		leaky()
		asks()
	case "hammer":
		hammer()
	case "second": // the first thread is not the first that allocates, and has more frames of C than are walked
		done := make(chan bool)
		go func() {
			C.free(C.malloc(1))
			close(done)
		}()
		<-done
		more = 2000
		leaky()
	case "environment":
		for _, v := range os.Environ() {
			if strings.HasPrefix(v, "CHEAP_CMEM_") || strings.HasPrefix(v, "LD_PRELOAD") || v == "" {
				fmt.Println("has", v)
			}
		}
		child := exec.Command("/bin/sh", "-c", "echo child $LD_PRELOAD $CHEAP_CMEM_RECORD $KEPT")
		child.Stdout = os.Stdout
		if err := child.Run(); err != nil {
			fmt.Println(err)
		}
	case "wait": // for a signal
		leaky()
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		fmt.Println("got", <-c)
		os.Exit(5)
	case "sleep":
		leaky()
		fmt.Println("ready")
		time.Sleep(time.Minute)
	}
}
