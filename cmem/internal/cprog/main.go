//go:build cgo && linux

//cheapvet:ignore cfree the program leaks for the tests of package cmem

// Command cprog leaks C memory, and writes the profile to the file that its argument names. It says
// whether package cmem is off, and what is wrong with the functions that allocate.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/cheapgo/cheap/cmem"
	"github.com/cheapgo/cheap/cmem/internal/cwork"
)

//go:noinline
func leaky() {
	for range 10 {
		cwork.Site(0b1101, 100_000)
	}
}

// moved is called on a goroutine whose stack is small.
//
//go:noinline
func moved(done chan<- bool) {
	runtime.LockOSThread()
	cwork.Pairs(1000, 1000) // the thread looks at the rate
	cwork.Moved(77_777)
	done <- true
}

// back allocates in C that Go calls, that C calls.
//
//go:noinline
func back() {
	cwork.Back(2, 50_001)
	cwork.BackThread(2, 50_002)
	cwork.Call(func() {
		cwork.Grow()
		cwork.Alloc(0, 50_003)
	})
}

// panics does so while a panic unwinds through C, and after it was recovered.
//
//go:noinline
func panics() {
	defer func() {
		recover()
		cwork.Alloc(0, 50_005)
	}()
	cwork.Call(func() {
		defer cwork.Alloc(0, 50_004)
		panic("through C")
	})
}

// now returns what the allocator and the package count at one moment: the runtime may start a
// thread at any time, for which the C library allocates.
func now() (used int64, jemalloc bool, st cmem.Stats) {
	for {
		before, _ := cwork.Used()
		st = cmem.ReadStats()
		if used, jemalloc = cwork.Used(); used == before {
			return used, jemalloc, st
		}
	}
}

// churn compares the exact bytes in use with what the allocator counts.
func churn(calls int) {
	const threads, rounds = 8, 10
	usedBefore, _, before := now()
	cwork.Churn(threads, rounds, calls/threads/rounds)
	used, jemalloc, after := now()
	grown := after.Live - before.Live
	if !jemalloc { // each block of glibc has a header
		grown += 8 * (after.Mallocs - after.Frees - before.Mallocs + before.Frees)
	}
	fmt.Printf("off: %s, exact: %v, %d calls, %d bytes, the allocator counts %+d\n", cmem.Off(), after.Exact,
		after.Mallocs+after.Frees-before.Mallocs-before.Frees, grown, used-usedBefore-grown)
}

// opened returns how many files of that name the program has open.
func opened(name string) (n int) {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasSuffix(to, name) {
			n++
		}
	}
	return n
}

func main() {
	if n, err := strconv.Atoi(os.Getenv("CPROG_CHURN")); err == nil {
		churn(n)
		return
	}
	if refuse := os.Getenv("CPROG_REFUSE"); refuse != "" {
		if e := cwork.Refuse(refuse == "kill"); e != 0 {
			fmt.Println("seccomp: error", e)
			os.Exit(1)
		}
	}
	if os.Getenv("CPROG_DUMPABLE") != "" {
		if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 1, 0); e != 0 {
			fmt.Println("prctl:", e)
			os.Exit(1)
		}
		defer func() { fmt.Println("opened:", opened("/mem")) }()
	}
	runtime.LockOSThread()
	cmem.SetRate(1)
	cwork.Pairs(1000, 1000) // the thread looks at the rate
	leaky()
	done := make(chan bool)
	go moved(done)
	<-done
	back()
	panics()
	cwork.Call(func() { cwork.Call(panics) })
	fmt.Printf("off: %s\nwrong: %s\n", cmem.Off(), cwork.Conform())
	f, err := os.Create(os.Args[1])
	if err == nil {
		err = cmem.WriteProfile(f)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
