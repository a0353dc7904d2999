//go:build linux && cgo

package main

/*
#include <stdlib.h>
#include "cases.h"
*/
import "C"

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
)

const (
	mib   = 1 << 20
	ticks = 500 // of 10 ms: as often beside busy processes, so what is planted is of the same size
)

// table has what is planted in each program, written before the first run.
var table = []planted{
	// one place of C that is never freed
	{name: "small", truth: "smallBlocks forgets blocks of 64 bytes", run: smallBlocks, want: line("smallBlocks")},
	{name: "middle", truth: "middleBlocks forgets blocks of 40 kB", run: middleBlocks, want: line("middleBlocks")},
	{name: "large", truth: "largeBlocks forgets blocks of 1 MiB, which malloc maps", run: largeBlocks, want: line("largeBlocks")},
	{name: "huge", truth: "hugeBlocks forgets blocks of 64 MiB", run: hugeBlocks, want: line("hugeBlocks")},
	{name: "zeroed", truth: "zeroedBlocks forgets what calloc gave", run: zeroedBlocks, want: line("zeroedBlocks")},
	{name: "aligned", truth: "alignedBlocks forgets what posix_memalign gave", run: alignedBlocks, want: line("alignedBlocks")},
	{name: "realloc", truth: "oneBuffer lets one block grow by realloc", run: oneBuffer, want: line("oneBuffer")},
	{name: "string", truth: "forgottenString forgets C.CString", run: forgottenString, want: line("forgottenString")},
	{name: "deep", truth: "deepStack forgets what is allocated below 300 functions of C", run: deepStack, want: line("deepStack")},
	{name: "callback", truth: "goCalledBack, which C calls, forgets blocks", run: calledByC, want: line("goCalledBack|calledByC")},
	{name: "helper", truth: "forgets, one of three callers of a helper, frees nothing", run: threeCallers, want: line("forgets|threeCallers|viaHelper"), must: `main\.forgets\b`},
	{name: "labels", truth: "tenant forgets blocks, with a label", run: tenants, want: line("tenants?")},
	{name: "late", truth: "late forgets blocks from the half of the run on", run: late, want: line("late")},
	{name: "short", truth: "short forgets 20 MiB in 10 ms", run: short, want: line("short")},
	{name: "abort", truth: "abort forgets blocks, and the program is ended by a signal", run: abort, want: line("abort")},
	{name: "thread", truth: "thread_leaks, a function of a thread of C, forgets blocks", run: threadOfC, want: line("threadOfC"), must: `thread_leaks|main\.threadOfC`},
	{name: "goroutines", truth: "leaver forgets blocks in ever new goroutines", run: goroutines, want: line("leaver|goroutines")},
	{name: "locked", truth: "lockedBlocks forgets blocks that are locked in memory", run: lockedBlocks, want: line("lockedBlocks")},
	{name: "hugepages", truth: "hugePages forgets blocks in huge pages", run: hugePages, want: line("hugePages")},

	// rules that want 20 seconds
	{name: "long", truth: "longRun forgets blocks for 25 s", run: longRun, want: line("longRun")},
	{name: "long+arenas", truth: "longBeside forgets 120 MiB in 25 s; 160 MiB are free in arenas", run: longBeside, want: line("longBeside")},
	{name: "long-mapped", truth: "longMapper maps ever more for 25 s, without malloc", run: longMapper, want: cause(`main\.longMapper\b|map_anonymous`), may: "longMapper", not: `trim|arenas`},
	{name: "long-lru", truth: "healthy: as lru, for 25 s", run: longLRU, want: healthy},

	// other allocators
	{name: "jemalloc", truth: "middleBlocks forgets blocks of jemalloc", run: middleBlocks, preload: "libjemalloc.so.2", want: line("middleBlocks")},
	{name: "tcmalloc", truth: "middleBlocks forgets blocks of tcmalloc", run: middleBlocks, preload: "libtcmalloc_minimal.so.4", want: line("middleBlocks")},
	{name: "mimalloc", truth: "middleBlocks forgets blocks of mimalloc", run: middleBlocks, preload: "libmimalloc.so.2", want: line("middleBlocks")},
	{name: "cheap-heap", truth: "cheapBlocks forgets blocks of a cheap.Heap", run: cheapBlocks, want: cause(`heap|map`), may: "cheapBlocks"},

	// programs that become others
	{name: "fork", truth: "the child of a fork forgets 50 MiB; it is not recorded", run: forked, want: cause(`child|fork|not recorded|started`), not: `trim|arenas`},
	{name: "exec", truth: "after exec smallBlocks forgets blocks", run: becomes, want: cause(`main\.smallBlocks\b|exec`), may: "smallBlocks", not: `trim|arenas`},
	{name: "starts", truth: "a program that is started leaks; it is not recorded", run: starts, want: cause(`child|not recorded|started`), not: `trim|arenas`},

	// each other cause
	{name: "arenas", truth: "160 MiB are free in the arenas of 16 threads", run: freeInArenas, want: cause(`free.*malloc|arenas`)},
	{name: "main-arena", truth: "160 MiB are free in the main arena; to bound the arenas would change nothing", run: freeInMain, want: cause(`free.*malloc|trim`), not: `MALLOC_ARENA_MAX|bound the|import .*arenas`},
	{name: "go-garbage", truth: "200 MiB of Go objects are garbage, with GOGC off", run: goGarbage, want: cause(`garbage|GOGC|Go heap`)},
	{name: "go-objects", truth: "reachable Go objects grow by 80 MiB", run: goObjects, want: cause(`Go (heap|objects)|reachable`), may: "goObjects"},
	{name: "go-idle", truth: "150 MiB are free in the Go heap", run: goIdle, want: cause(`Go heap`), not: `grow`},
	{name: "go-stacks", truth: "goroutines that are never ended have 90 MiB of stacks", run: goStacks, want: cause(`goroutine`), may: "goStacks|below"},
	{name: "thread-stacks", truth: "100 threads of C have 100 MiB of stacks", run: threadStacks, want: cause(`stacks? of thread|threads?\b`), not: `\b0 threads`},
	{name: "mapped", truth: "mapper maps memory without malloc, and never unmaps it", run: mapper, want: cause(`main\.mapper\b|map_anonymous`), may: "mapper", not: `trim|arenas`},
	{name: "mapped-locked", truth: "lockedMapper maps memory and locks it", run: lockedMapper, want: cause(`main\.lockedMapper\b|map_anonymous`), may: "lockedMapper", not: `trim|arenas`},
	{name: "reserved", truth: "reserver uses more and more of one reservation of 4 GiB", run: reserver, want: cause(`main\.reserver\b|map_reserved|large mappings?.*grow|grow.*mapp`), may: "reserver", not: `trim|arenas`},
	{name: "mappings", truth: "manyMappings makes 20,000 mappings of a page", run: manyMappings, want: cause(`main\.manyMappings\b|map_many|mapp`), may: "manyMappings", not: `trim|arenas`},
	{name: "go-mappings", truth: "Go itself maps memory, by syscall.Mmap, and never unmaps it", run: goMaps, want: cause(`Go.*mapp|mapp.*Go|mapp.*grow|grow.*mapp|main\.goMaps`), may: "goMaps", not: `trim|arenas`},
	{name: "shared", truth: "sharedMemory touches ever more shared memory", run: sharedMemory, want: cause(`main\.sharedMemory\b|map_shared|shared|memfd|planted`), may: "sharedMemory", not: `trim|arenas`},

	// pairs: the first is the larger one
	{name: "two", truth: "first forgets 50 MiB, second 20 MiB", run: twoPlaces, want: line("first|second|twoPlaces"), must: `main\.first\b`},
	{name: "leak+arenas", truth: "besideArenas forgets 50 MiB; 160 MiB are free in arenas", run: besideArenas, want: line("besideArenas")},
	{name: "leak+main-arena", truth: "besideMain forgets 50 MiB; 160 MiB are free in the main arena", run: besideMain, want: line("besideMain")},
	{name: "leak+cache", truth: "besideCache forgets 50 MiB; fill has made 150 MiB at the start", run: besideCache, want: line("besideCache")},
	{name: "leak+churn", truth: "besideChurn forgets 50 MiB; churn allocates and frees 2 GiB meanwhile", run: besideChurn, want: line("besideChurn")},
	{name: "leak+garbage", truth: "besideGarbage forgets 50 MiB; the Go heap has 150 MiB of garbage", run: besideGarbage, want: line("besideGarbage")},
	{name: "leak+stacks", truth: "besideStacks forgets 50 MiB; 100 threads have 100 MiB of stacks", run: besideStacks, want: line("besideStacks")},
	{name: "leak+mappings", truth: "besideMappings forgets 50 MiB, beside 20,000 mappings of 80 MiB in all", run: besideMappings, want: line("besideMappings")},
	{name: "leak+forks", truth: "besideForks forgets 50 MiB, and starts 50 children", run: besideForks, want: line("besideForks")},
	{name: "mapped+leak", truth: "wide maps 80 MiB more, narrow forgets 20 MiB of malloc", run: mapsAndLeaks, want: cause(`main\.wide\b|map_anonymous|mapp.*grow`), may: "wide|narrow|mapsAndLeaks"},
	{name: "arenas+garbage", truth: "240 MiB are free in arenas, 70 MiB are garbage of Go", run: arenasAndGarbage, want: cause(`free.*malloc|arenas`), not: `grow`},
	{name: "garbage+arenas", truth: "250 MiB are garbage of Go, 90 MiB free in arenas", run: garbageAndArenas, want: cause(`garbage|GOGC|Go heap`), not: `grow`},

	// nothing is wrong
	{name: "idle", truth: "healthy: nothing is allocated", run: idle, want: healthy},
	{name: "cache", truth: "healthy: 100 MiB are made in the first second and kept", run: cache, want: healthy},
	{name: "churn", truth: "healthy: all is freed at once", run: churns, want: healthy},
	{name: "sawtooth", truth: "healthy: 60 MiB are made and freed, again and again", run: sawtooth, want: healthy},
	{name: "lru", truth: "healthy: a cache of 64 MiB at most, in which each new entry replaces one", run: lru, want: healthy},
	{name: "build", truth: "healthy: 400 MiB grow for 4 s, and are freed before the end", run: builds, want: healthy},
	{name: "late-cache", truth: "healthy: 60 MiB are made in the middle of the run and kept", run: lateCache, want: healthy},
	{name: "last-tooth", truth: "healthy: as sawtooth, but the program ends while 50 of 60 MiB are made", run: lastTooth, want: healthy},
	{name: "noise", truth: "healthy: 40 blocks of 0 to 4 MiB, each replaced again and again by one of another size", run: noise, want: healthy},
	{name: "warm-up", truth: "healthy: a cache is full after half the time, ever more slowly", run: warmUp, want: healthy},
	{name: "back-and-forth", truth: "healthy: one buffer grows and shrinks", run: backAndForth, want: healthy},
	{name: "short-healthy", truth: "healthy: a run of a moment that frees all", run: shortHealthy, want: healthy},
	{name: "go-churn", truth: "healthy: Go objects come and go", run: goChurn, want: healthy},
	{name: "go-cache", truth: "healthy: 100 MiB of Go objects are kept", run: goCache, want: healthy},
	{name: "pool", truth: "healthy: 16 threads of C allocate and free", run: threadPool, want: healthy},
	{name: "map-churn", truth: "healthy: mappings come and go", run: mapChurn, want: healthy},
	{name: "mapped-once", truth: "healthy: 200 MiB are mapped at the start and kept", run: mappedOnce, want: healthy},
	{name: "cheap-churn", truth: "healthy: a cheap.Heap is filled and emptied", run: cheapChurn, want: healthy},
	{name: "slow", truth: "healthy, as far as can be told: 1 MiB more in the whole run", run: slow, want: healthy},
	{name: "zstd", truth: "healthy: DataDog/zstd compresses and decompresses by one context", real: "verdict", want: healthy},
	{name: "sqlite", truth: "healthy: go-sqlite3 scans a table", real: "sqlite", args: []string{"-scans=160"}, want: healthy},
	{name: "tree-sitter", truth: "healthy: trees are walked", real: "treesitter", args: []string{"-walks=300"}, want: healthy},
	{name: "duckdb", truth: "healthy: queries of DuckDB, each result destroyed", real: "verdict", want: healthy},

	// real libraries that are used wrongly
	{name: "duckdb-results", truth: "results forgets the results of DuckDB", real: "verdict", want: cause(`main\.results\b`), may: "results"},
	{name: "sqlite-rows", truth: "rows forgets the rows of a query", real: "verdict", want: cause(`main\.rows\b`), may: "rows"},
	{name: "zstd-writers", truth: "writers forgets to close writers of DataDog/zstd", real: "verdict", want: cause(`main\.writers\b`), may: "writers"},
	{name: "zstd-contexts", truth: "unpack forgets a context each round, for collections that do not come", real: "zstd", args: []string{"-rounds=4500"}, want: cause(`main\.unpack\b`), may: "unpack"},
	{name: "trees", truth: "trees forgets to close trees of tree-sitter", real: "verdict", want: cause(`main\.trees\b`), may: "trees"},
}

// tick waits, as often as a program has to do something.
func tick() { time.Sleep(10 * time.Millisecond) }

// each calls a function at one tick in so many.
func each(nth int, f func()) {
	count(func(i int) {
		if i%nth == 0 {
			f()
		}
	})
}

func count(f func(int)) {
	for i := range ticks {
		f(i)
		tick()
	}
}

func wait() { time.Sleep(4 * time.Second) }

func touch(b []byte) []byte {
	for i := range b {
		b[i] = 1
	}
	return b
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func self() string { return must(os.Executable()) }

// The main arena is that of the thread that main begins in.
func init() { runtime.LockOSThread() }

var (
	text   = string(make([]byte, 50000))
	buffer unsafe.Pointer
	kept   [][]byte
)

func smallBlocks()   { each(1, func() { C.get_many(1500, 64) }) }
func middleBlocks()  { each(1, func() { C.get_many(3, 40000) }) }
func largeBlocks()   { each(5, func() { C.get(mib) }) }
func hugeBlocks()    { each(50, func() { C.get(64 * mib) }) }
func zeroedBlocks()  { each(1, func() { C.get_zeroed(100000) }) }
func alignedBlocks() { each(1, func() { C.get_aligned(4096, 102400) }) }
func oneBuffer()     { count(func(i int) { buffer = C.resized(buffer, C.size_t(i+1)*160000) }) }
func deepStack()     { each(1, func() { C.get_deep(300, 100000) }) }
func late()          { count(func(i int) { C.get(C.size_t(i / (ticks / 2) * 200000)) }) }
func short()         { C.get_many(200, 100000) }
func threadOfC()     { C.leaking_threads(1); time.Sleep(ticks * 11 * time.Millisecond) }
func goroutines()    { each(1, func() { go leaver() }) }
func leaver()        { C.get(100000) }
func lockedBlocks()  { each(1, func() { C.lock(C.get(100000), 100000) }) }
func hugePages()     { each(20, func() { C.get_huge(2 * mib) }) }
func cheapBlocks()   { each(1, func() { touch(unsafe.Slice((*byte)(cheap.Malloc(100000)), 100000)) }) } //cheapvet:ignore cfree it is planted
func calledByC()     { each(1, func() { C.call_back(100000) }) }

//export goCalledBack
func goCalledBack(n C.int) { C.get(C.size_t(n)) }

//go:noinline
func viaHelper() unsafe.Pointer { return C.get(100000) }
func frees()                    { C.release(viaHelper()) }
func freesToo()                 { C.release(viaHelper()) }
func forgets()                  { viaHelper() }
func threeCallers()             { each(1, func() { frees(); freesToo(); forgets(); freesToo(); frees() }) }

func tenant(context.Context) { C.get(100000) }
func tenants() {
	labels := pprof.Labels("tenant", "acme")
	each(1, func() { pprof.Do(context.Background(), labels, tenant) })
}

func five(f func()) {
	for range 5 {
		f()
	}
}

func longRun()    { five(func() { each(1, func() { C.get(50000) }) }) }
func longBeside() { C.free_in_arenas(16, 10*mib); five(func() { each(1, func() { C.get(50000) }) }) }
func longMapper() { five(func() { each(10, func() { C.map_anonymous(mib) }) }) }
func longLRU()    { five(lru) }

func forgottenString() {
	each(1, func() {
		C.CString(text) //cheapvet:ignore cfree it is planted
		C.CString(text) //cheapvet:ignore cfree it is planted
	})
}

func abort() {
	each(1, func() { C.get(100000) })
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func forked() { C.in_child(ticks, 100000, 10000) }
func starts() { must(exec.Command(self(), "small").Output()) }
func becomes() {
	time.Sleep(time.Second)
	must(0, syscall.Exec(self(), []string{self(), "small"}, os.Environ()))
}

func freeInArenas() { C.free_in_arenas(16, 10*mib); wait() }
func freeInMain()   { C.free_in_main(160 * mib); wait() }
func threadStacks() { C.stacks_of_threads(100); wait() }

func garbage(n int) {
	debug.SetGCPercent(-1)
	drop(n)
}

// drop makes n MiB of garbage.
func drop(n int) {
	for range n {
		touch(make([]byte, mib))
	}
}

func keep(n int) {
	for range n {
		kept = append(kept, touch(make([]byte, mib)))
	}
}

func goGarbage() { garbage(200); wait() }
func goObjects() { each(1, func() { kept = append(kept, touch(make([]byte, 160000))) }) }
func goIdle()    { keep(150); kept = nil; runtime.GC(); wait() }

func goStacks() {
	for range 2000 {
		go below(make(chan int), 400)
	}
	wait()
}

//go:noinline
func below(c chan int, depth int) byte {
	var frame [64]byte
	if depth == 0 {
		<-c
		return 0
	}
	frame[depth%64] = below(c, depth-1)
	return frame[1]
}

func mapper()       { each(5, func() { C.map_anonymous(mib) }) }
func lockedMapper() { each(5, func() { C.lock(C.map_anonymous(mib), mib) }) }
func reserver()     { each(1, func() { C.map_reserved(200 * 1024) }) }
func manyMappings() { each(1, func() { C.map_many(40) }) }
func sharedMemory() { each(5, func() { C.map_shared(mib) }) }
func goMaps() {
	each(5, func() {
		touch(must(syscall.Mmap(-1, 0, mib, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)))
	})
}

func first()     { C.get(100000) }
func second()    { C.get(40000) }
func twoPlaces() { each(1, func() { second(); first() }) }

func wide()         { C.map_anonymous(mib) }
func narrow()       { C.get(200000) }
func mapsAndLeaks() { each(5, func() { wide(); narrow() }) }

func besideArenas()   { C.free_in_arenas(16, 10*mib); each(1, func() { C.get(100000) }) }
func besideMain()     { C.free_in_main(160 * mib); each(1, func() { C.get(100000) }) }
func besideCache()    { fill(150 * mib); each(1, func() { C.get(100000) }) }
func besideChurn()    { each(1, func() { churn(4 * mib); C.get(100000) }) }
func besideGarbage()  { garbage(150); each(1, func() { C.get(100000) }) }
func besideStacks()   { C.stacks_of_threads(100); each(1, func() { C.get(100000) }) }
func besideMappings() { C.map_many(20000); each(1, func() { C.get(100000) }) }
func besideForks() {
	count(func(i int) {
		C.get(100000)
		if i%20 == 0 {
			C.in_child(1, 100000, 0)
			must(exec.Command("true").Output())
		}
	})
}

func arenasAndGarbage() { garbage(70); C.free_in_arenas(16, 15*mib); wait() }
func garbageAndArenas() { garbage(250); C.free_in_arenas(9, 10*mib); wait() }

// fill makes blocks of n bytes in all, churn frees such at once, and tooth takes its time.
func fill(n int) (blocks []unsafe.Pointer) {
	for range n / 100000 {
		blocks = append(blocks, C.get(100000))
	}
	return blocks
}

func churn(n int) { free(fill(n)) }

func tooth(n int) (blocks []unsafe.Pointer) {
	for range n / mib {
		blocks = append(blocks, C.get(mib))
		tick()
	}
	return blocks
}

func free(blocks []unsafe.Pointer) {
	for _, p := range blocks {
		C.release(p)
	}
}

func idle()         { wait() }
func cache()        { fill(100 * mib); wait() }
func churns()       { each(1, func() { churn(4 * mib) }) }
func builds()       { free(tooth(400 * mib)); tick() }
func lastTooth()    { sawtooth(); tooth(50 * mib) }
func lateCache()    { wait(); tooth(60 * mib); wait() }
func shortHealthy() { free(fill(20 * mib)) }
func goChurn()      { each(1, func() { drop(4) }) }
func goCache()      { keep(100); wait() }
func threadPool()   { C.busy_threads(16); time.Sleep(ticks * 10 * time.Millisecond) }
func mappedOnce()   { C.map_anonymous(200 * mib); wait() }
func slow()         { fill(50 * mib); each(50, func() { C.get(100000) }) }
func warmUp()       { count(func(i int) { C.get(C.size_t(max(0, ticks/2-i) * 800)) }) }
func backAndForth() { count(func(i int) { buffer = C.resized(buffer, C.size_t(1+(i*37)%100)*400000) }) }

func sawtooth() {
	for range 6 {
		free(tooth(60 * mib))
	}
}

// replace replaces one block of a cache by another.
func replace(blocks []unsafe.Pointer, at, n int) {
	C.release(blocks[at])
	blocks[at] = C.get(C.size_t(n))
}

func noise() {
	r, blocks := rand.New(rand.NewPCG(1, 2)), make([]unsafe.Pointer, 40)
	each(1, func() { replace(blocks, r.IntN(len(blocks)), r.IntN(4*mib)) })
}

var entries [640]unsafe.Pointer

func lru() {
	blocks := entries[:]
	count(func(i int) {
		for k := range 20 {
			replace(blocks, (20*i+k)*7%len(blocks), 100000)
		}
	})
}

func mapChurn() {
	count(func(i int) {
		n := C.size_t(1+i%20) * mib
		C.unmap(C.map_anonymous(n), n)
	})
}

func cheapChurn() {
	for range 5 {
		var blocks []unsafe.Pointer
		for range 400 {
			blocks = append(blocks, cheap.Malloc(100000))
			touch(unsafe.Slice((*byte)(blocks[len(blocks)-1]), 100000))
		}
		time.Sleep(500 * time.Millisecond)
		for _, p := range blocks {
			cheap.Free(p)
		}
	}
}
