package main

/*
// The functions are in the package of the binding, which the linker joins with this one.
#cgo linux LDFLAGS: -Wl,--unresolved-symbols=ignore-all
#include <stddef.h>
#include <stdint.h>

// From zstd.h, which the binding has in its folder.
typedef struct ZSTD_DCtx_s ZSTD_DCtx;
ZSTD_DCtx *ZSTD_createDCtx(void);
size_t ZSTD_freeDCtx(ZSTD_DCtx *);
unsigned long long ZSTD_getFrameContentSize(const void *, size_t);
size_t ZSTD_decompressDCtx(ZSTD_DCtx *, void *, size_t, const void *, size_t);

static uintptr_t unpack_new(void) { return (uintptr_t)ZSTD_createDCtx(); }
static void unpack_free(uintptr_t ctx) { ZSTD_freeDCtx((ZSTD_DCtx *)ctx); }

// unpack_round decompresses a record if its size is known and small enough.
static size_t unpack_round(uintptr_t ctx, char *to, size_t most, const char *record, size_t size) {
	if (ZSTD_getFrameContentSize(record, size) > most) return (size_t)-1;
	return ZSTD_decompressDCtx((ZSTD_DCtx *)ctx, to, most, record, size);
}
*/
import "C"

import (
	"log"
	"unsafe"
)

// unpackRounds is unpack with one function of C for the calls of a round.
func unpackRounds(records [][]byte, f *found) {
	ctx := C.unpack_new()
	defer C.unpack_free(ctx)
	buffer := make([]byte, 256)
	to := (*C.char)(unsafe.Pointer(unsafe.SliceData(buffer)))
	for _, record := range records {
		n := C.unpack_round(ctx, to, C.size_t(len(buffer)), (*C.char)(unsafe.Pointer(unsafe.SliceData(record))), C.size_t(len(record)))
		if n > C.size_t(len(buffer)) {
			log.Fatal("a record is larger than the buffer, or no record")
		}
		text := buffer[:n]
		f.bytes += len(text)
		f.digits += int(text[7] - '0')
	}
}
