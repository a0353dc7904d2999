package cheap

import "github.com/cheapgo/cheap/internal/heap"

// Stats are the counts of a [Heap].
//
// One rule is true of all counts of the module, those of a method Stats and those of a
// function whose name begins with Read: they are exact, and agree with one another, if
// nobody uses what they count during the call. Under concurrent use the fields may not be
// mutually consistent.
type Stats struct {
	Blocks int64 // blocks in use
	Bytes  int64 // usable bytes of the blocks in use

	Mallocs int64 // blocks handed out since the heap was made
	Frees   int64 // blocks freed since the heap was made

	// Held is how many bytes the heap holds from the operating system, metadata included. Behind
	// the end of a span, or of a large block, less than 64 KiB more may be resident, which an
	// earlier block has left. That is idle memory: Trim and the decay release it ([SetDecay]).
	// While all heaps together have more than 4 MiB of it, and more than a third of the bytes of
	// their spans, a heap that takes or shrinks a span releases at once what lies behind that one;
	// what is there already stays until Trim or the decay. HeapOptions.HugePages says what else may
	// be resident.
	Held   int64
	Limit  int64 // HeapOptions.Limit
	Cached int64 // bytes of free blocks in caches, including those of Locals

	CacheMax int64 // the most that one cache may hold, in bytes
	Caches   int64 // how many caches there are
}

// Heaps returns the heaps of the program, those made first at the front. It is for tools
// that show what a program holds. A heap that is destroyed is not among them.
func Heaps() []*Heap {
	var all []*Heap
	for _, h := range heap.Heaps() {
		all = append(all, (*Heap)(h))
	}
	return all
}

// Name returns HeapOptions.Name, or its default. It may be called after Destroy.
func (h *Heap) Name() string { return (*heap.Heap)(h).Name() }

// Stats returns the heap's counts. Of a heap that is destroyed, also during the call, all
// are 0.
func (h *Heap) Stats() Stats {
	s := (*heap.Heap)(h).Stats()
	return Stats{
		Blocks: s.Blocks, Bytes: s.Bytes, Mallocs: s.Mallocs, Frees: s.Frees,
		Held: s.Held, Limit: s.Limit, Cached: s.Cached, CacheMax: s.CacheMax, Caches: s.Caches,
	}
}
