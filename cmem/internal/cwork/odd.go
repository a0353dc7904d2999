//go:build cgo && linux

package cwork

// #include <stdint.h>
// #include <stdlib.h>
// void *cwork_junk(int k, int through_go, size_t n, uintptr_t go, uintptr_t heap);
// void *cwork_without(size_t n);
// void *cwork_coroutine(size_t n);
// void *cwork_jit(size_t n, int times);
// int cwork_signals(int times);
// const char *cwork_foreign(void);
// void cwork_exit(void);
// int cwork_sqlite_forgets(void);
// void *cwork_handmade(uintptr_t junk, size_t n);
// int cwork_tables(int *wrong);
// int cwork_table_gone(void);
// int cwork_tables_as(int which);
import "C"

import (
	"runtime"
	"unsafe"
)

// Junk allocates n bytes while the frame pointer is none, in the k-th way, in C or in C that Go has
// called that C has called so. It returns nil if there is no such way.
func Junk(k int, throughGo bool, n int) unsafe.Pointer {
	pc, _, _, _ := runtime.Caller(0)
	heap := new([512]uintptr)
	for i := range heap {
		heap[i] = pc // as if each were a return address
	}
	through := C.int(0)
	if throughGo {
		through = 1
	}
	p := C.cwork_junk(C.int(k), through, C.size_t(n), C.uintptr_t(pc), C.uintptr_t(uintptr(unsafe.Pointer(heap))))
	runtime.KeepAlive(heap)
	return p
}

// Without allocates below a function without a table for unwinding.
func Without(n int) unsafe.Pointer { return C.cwork_without(C.size_t(n)) }

// Coroutine allocates on a stack of the program.
func Coroutine(n int) unsafe.Pointer { return C.cwork_coroutine(C.size_t(n)) }

// JIT allocates n bytes below code that was made while the program runs, after that has happened
// many times while threads make more of it. It returns nil where there is no such test.
func JIT(n, times int) unsafe.Pointer { return C.cwork_jit(C.size_t(n), C.int(times)) }

// Signals has a handler allocate, and returns how often.
func Signals(times int) int { return int(C.cwork_signals(C.int(times))) }

// Foreign frees blocks that are not from malloc of the program, and says what is wrong, or "".
func Foreign() string { return C.GoString(C.cwork_foreign()) }

// Exit ends the process as C does, with functions that allocate.
func Exit() { C.cwork_exit() }

// SQLiteForgets has SQLite open a database, which is forgotten with a statement. It reports whether
// SQLite is installed.
func SQLiteForgets() bool { return C.cwork_sqlite_forgets() != 0 }

// HandMade allocates n bytes on a stack that begins with a return address which is none. It returns
// nil where there is no such test.
func HandMade(junk uintptr, n int) unsafe.Pointer {
	return C.cwork_handmade(C.uintptr_t(junk), C.size_t(n))
}

// Tables compares the tables for unwinding that package cmem finds with those that libgcc does. It returns at how many
// addresses there is one, and at how many another one.
func Tables() (n, wrong int) {
	var w C.int
	n = int(C.cwork_tables(&w))
	return n, int(w)
}

// TableGone asks for a table of a library, and again after it was unloaded without a call that is counted. It returns 1
// if there was one only before, and -1 if it cannot be tried.
func TableGone() int { return int(C.cwork_table_gone()) }

// What the unwinder of package cmem gets: nothing, so it is not called; or tables that libgcc finds; or those that
// package cmem does.
const (
	NoTables = iota
	ItsOwnTables
	TablesOfModules
)

// TablesAs has it get others from now on, and returns what it got before.
func TablesAs(which int) (was int) { return int(C.cwork_tables_as(C.int(which))) }
