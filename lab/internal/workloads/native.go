//go:build cgo && unix

package workloads

/*
#cgo linux LDFLAGS: -lpthread

#include "native.h"
*/
import "C"

// missingNative says why C's malloc cannot be measured, "" if it can.
const missingNative = ""

// natives are the C versions of the workloads, by name.
var natives = map[string]func(s table, n, threads int) Tally{
	"larson": func(s table, n, threads int) Tally {
		return tallyOf(C.workload_larson(s.native(), C.uint32_t(n), C.int(threads)))
	},
	"alloc-test": func(s table, n, _ int) Tally { return tallyOf(C.workload_alloc_test(s.native(), C.uint32_t(n))) },
	"rptest": func(s table, n, threads int) Tally {
		return tallyOf(C.workload_rptest(s.native(), C.uint32_t(n), C.int(threads)))
	},
	"sh6bench":     func(s table, n, _ int) Tally { return tallyOf(C.workload_sh(s.native(), C.uint32_t(n))) },
	"glibc-simple": func(s table, n, _ int) Tally { return tallyOf(C.workload_simple(s.native(), C.uint32_t(n))) },
	"mixture":      func(s table, n, _ int) Tally { return tallyOf(C.workload_mixture(s.native(), C.uint32_t(n))) },
	"xmalloc": func(s table, n, threads int) Tally {
		return tallyOf(C.workload_xmalloc(s.native(), C.uint32_t(n), C.int(threads)))
	},
	"cache-scratch": func(s table, n, threads int) Tally {
		return tallyOf(C.workload_cache_scratch(s.native(), C.uint32_t(n), C.int(threads)))
	},
	"mstress": func(s table, n, threads int) Tally {
		return tallyOf(C.workload_mstress(s.native(), C.uint32_t(n), C.int(threads)))
	},
	"sawtooth": func(s table, n, _ int) Tally { return tallyOf(C.workload_sawtooth(s.native(), C.uint32_t(n))) },
	"large":    func(s table, n, _ int) Tally { return tallyOf(C.workload_large(s.native(), C.uint32_t(n))) },
}

// native is the table for C. Its array has no Go pointers.
func (t table) native() C.workload_table { return C.workload_table(t.base) }

func tallyOf(t C.struct_workload_tally) Tally {
	return Tally{Blocks: uint64(t.blocks), Frees: uint64(t.frees), Bytes: uint64(t.bytes), Sum: uint64(t.sum), Asked: uint64(t.asked), Freed: uint64(t.freed)}
}
