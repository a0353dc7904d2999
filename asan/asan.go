//go:build asan

package asan

/*
#include <stdint.h>
#include <stdlib.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#include "report.h"

static void poison(uintptr_t p, size_t n) { __asan_poison_memory_region((void *)p, n); }
static void unpoison(uintptr_t p, size_t n) { __asan_unpoison_memory_region((void *)p, n); }
static void add_region(uintptr_t p, size_t n) { __lsan_register_root_region((void *)p, n); }
static void drop_region(uintptr_t p, size_t n) { __lsan_unregister_root_region((void *)p, n); }
*/
import "C"

import "github.com/cheapgo/cheap/internal/mem/poison"

func init() {
	C.cheap_report_init()
	poison.Set(sanitizer{})
}

// A sanitizer is that of the C compiler.
type sanitizer struct{}

func (sanitizer) Poison(addr, size uintptr)     { C.poison(C.uintptr_t(addr), C.size_t(size)) }
func (sanitizer) Unpoison(addr, size uintptr)   { C.unpoison(C.uintptr_t(addr), C.size_t(size)) }
func (sanitizer) Register(addr, size uintptr)   { C.add_region(C.uintptr_t(addr), C.size_t(size)) }
func (sanitizer) Unregister(addr, size uintptr) { C.drop_region(C.uintptr_t(addr), C.size_t(size)) }
func (sanitizer) Seal(factor uint64)            { C.cheap_report_factor(C.uint64_t(factor)) }

func (sanitizer) Stack(id uint32, text string) {
	C.cheap_report_stack(C.uint32_t(id), C.CString(text))
}
