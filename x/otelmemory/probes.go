//go:build linux && cgo && (amd64 || arm64)

package otelmemory

/*
#include <stdint.h>

// A probe is an instruction that does nothing, and a note about it in the file of the program.
// A tracer writes a breakpoint there. The note is that of SystemTap (type 3): addresses of the
// instruction, of the section .stapsdt.base, from which a tool learns whether addresses were
// moved after linking, and of a semaphore; the names of the provider and of the probe; and where
// the arguments are, as size@place. Sections of notes are not loaded.
//
// The kernel counts the tracers of a probe in its semaphore, a number of 16 bits. The other
// half is there so that Go can load both atomically.
#define PROVIDER "otel_memory"

struct semaphore { uint16_t tracers, unused; };

#define SEMAPHORE(name) \
	static struct semaphore name##_semaphore \
	__asm__("cheap_otel_memory_" #name "_semaphore") \
	__attribute__((section(".probes"), aligned(4))); \
	static void *name##_semaphore_address(void) { return &name##_semaphore; }

SEMAPHORE(alloc)
SEMAPHORE(free)

#define PROBE(name, arguments) \
	"990:	nop\n" \
	"	.pushsection .note.stapsdt, \"\", \"note\"\n" \
	"	.balign 4\n" \
	"	.4byte 992f-991f, 994f-993f, 3\n" \
	"991:	.asciz \"stapsdt\"\n" \
	"992:	.balign 4\n" \
	"993:	.8byte 990b, _.stapsdt.base, cheap_otel_memory_" #name "_semaphore\n" \
	"	.asciz \"" PROVIDER "\"\n" \
	"	.asciz \"" #name "\"\n" \
	"	.asciz \"" arguments "\"\n" \
	"994:	.balign 4\n" \
	"	.popsection\n" \
	"	.ifndef _.stapsdt.base\n" \
	"	.pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
	"	.weak _.stapsdt.base\n" \
	"	.hidden _.stapsdt.base\n" \
	"_.stapsdt.base:\n" \
	"	.space 1\n" \
	"	.size _.stapsdt.base, 1\n" \
	"	.popsection\n" \
	"	.endif\n"

#if defined(__x86_64__)
#define FIRST __asm__("rdi")
#define SECOND __asm__("rsi")
#define THIRD __asm__("rdx")
#define ONE_ARGUMENT "8@%%rdi"
#define THREE_ARGUMENTS "8@%%rdi 8@%%rsi 8@%%rdx"
#else
#define FIRST __asm__("x0")
#define SECOND __asm__("x1")
#define THIRD __asm__("x2")
#define ONE_ARGUMENT "8@x0"
#define THREE_ARGUMENTS "8@x0 8@x1 8@x2"
#endif

// The functions are not inlined, so that each probe is in one place, with one note.

__attribute__((noinline)) static void fire_alloc(uint64_t user, uint64_t size, uint64_t weighted_bytes) {
	register uint64_t first FIRST = user;
	register uint64_t second SECOND = size;
	register uint64_t third THIRD = weighted_bytes;
	__asm__ __volatile__(PROBE(alloc, THREE_ARGUMENTS) : : "r"(first), "r"(second), "r"(third) : "memory");
}

__attribute__((noinline)) static void fire_free(uint64_t ptr) {
	register uint64_t first FIRST = ptr;
	__asm__ __volatile__(PROBE(free, ONE_ARGUMENT) : : "r"(first) : "memory");
}
*/
import "C"

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap/internal/sample"
)

const supported = true

// The semaphores lie in the data of the program, and are aligned to 4 bytes. The kernel writes
// the first half of each, so a semaphore that is not 0 has a tracer, whatever the order of bytes.
var (
	allocSemaphore = (*uint32)(unsafe.Pointer(C.alloc_semaphore_address()))
	freeSemaphore  = (*uint32)(unsafe.Pointer(C.free_semaphore_address()))
)

func attached() (alloc, free bool) {
	return atomic.LoadUint32(allocSemaphore) != 0, atomic.LoadUint32(freeSemaphore) != 0
}

// probes fires the probes that have a tracer.
type probes struct{}

var tracer sample.Tracer = probes{}

func (probes) Alloc(p, size uintptr, weight float64) {
	if atomic.LoadUint32(allocSemaphore) != 0 {
		C.fire_alloc(C.uint64_t(p), C.uint64_t(size), C.uint64_t(math.Round(weight*float64(size))))
	}
}

func (probes) Free(p uintptr) {
	if atomic.LoadUint32(freeSemaphore) != 0 {
		C.fire_free(C.uint64_t(p))
	}
}
