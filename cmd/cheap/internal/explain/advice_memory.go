package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/page/figure"
)

// memoryTime is the time that memory of C takes, in nanoseconds.
type memoryTime struct {
	malloc     float64            // the allocator of C, where C itself has called it
	below      map[string]float64 // that, by the call of C
	collectors map[string]float64 // runtime.GC, by the function that has called it
}

func (m *memoryTime) add(c class, weight float64) {
	if m.below == nil {
		m.below, m.collectors = map[string]float64{}, map[string]float64{}
	}
	if c.malloc {
		m.malloc += weight
		if c.callee != "" {
			m.below[shortName(c.site.function)+" "+c.callee] += weight
		}
	}
	if c.collector != "" {
		m.collectors[c.collector] += weight
	}
}

// largest returns the key with the most, "" if there is none.
func largest(of map[string]float64) (key string) {
	for _, k := range slices.Sorted(maps.Keys(of)) {
		if key == "" || of[k] > of[key] {
			key = k
		}
	}
	return key
}

// leastMemory is the share from which on memory of C is worth a look.
const leastMemory = 0.05

// adviseMemory is about what package pace and module cmem are for. A profile of the processor does
// not say what would be left, so such advice is behind the other.
func (r *Report) adviseMemory(m memoryTime, total float64) {
	collection := Of(r.Mechanisms, Collection).Share
	hasC := Of(r.Mechanisms, C).Share+Of(r.Mechanisms, Crossing).Share > 0
	if by := largest(m.collectors); by != "" && collection >= leastMemory {
		a := Advice{Site: shortName(by) + " runtime.GC", Now: collection, Expected: collection, Open: true, Link: "docs/guide.md#package-pace-for-large-objects-without-close"}
		switch {
		case isOurs(packageOf(by)):
			a.Site = "collections of package pace"
			a.Text = "Package pace starts collections because of memory outside the Go heap. Options.MaxGCShare of package pace bounds the time that they take, and a Close where the last use is known needs none."
			r.Advice = append(r.Advice, a)
		case hasC:
			a.Text = "The program asks for collections. If that is for memory of C, package pace does it as often as the bytes of C need, and bounds the time that it takes."
			r.Advice = append(r.Advice, a)
		}
	}
	if malloc := m.malloc / total; malloc >= leastMemory {
		a := Advice{
			Site: "malloc and free of C, which C calls", Now: malloc, Expected: malloc, Open: true, Link: "docs/memory.md#in-your-own-program",
			Text: "Module cmem, in the program, and `cheap record`, for a program as it is, say which functions of C allocate, how much, and which functions of Go have called them.",
		}
		if call := largest(m.below); call != "" {
			a.Text = fmt.Sprintf("The most of it, %s, is below %s. ", figure.Percent(m.below[call]/total), call) + a.Text
		}
		r.Advice = append(r.Advice, a)
	}
}

// collectorOf returns the function that has called runtime.GC, "" if none has. Package testing
// does so before each benchmark, which is no fault of the program.
func collectorOf(stack []frame) string {
	called := false
	for _, f := range stack {
		switch pkg := packageOf(f.function); {
		case f.function == "runtime.GC":
			called = true
		case !called || pkg == "runtime" || pkg == "runtime/debug": // FreeOSMemory
		case pkg == "testing":
			return ""
		default:
			return f.function
		}
	}
	return ""
}

// isMalloc reports whether a function of C is a part of an allocator: those of C and C++ and what
// they are made of in glibc, jemalloc, mimalloc and tcmalloc.
func isMalloc(f frame) bool {
	if !f.isC {
		return false
	}
	if strings.HasSuffix(f.function, inMalloc) {
		return true
	}
	name := strings.TrimPrefix(f.function, "__libc_")
	switch name {
	case "malloc", "calloc", "realloc", "reallocarray", "free", "cfree", "aligned_alloc", "memalign", "posix_memalign", "valloc", "pvalloc",
		"malloc_consolidate", "sysmalloc", "systrim", "unlink_chunk":
		return true
	}
	for _, prefix := range []string{"_int_malloc", "_int_free", "_int_realloc", "_int_memalign", "tcache_", "je_", "mi_", "_mi_", "tc_", "_Znw", "_Zna", "_Zdl", "_Zda"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
