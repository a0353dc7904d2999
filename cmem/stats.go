package cmem

import (
	"slices"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// Stats are the counts of the C heap.
type Stats struct {
	// Mallocs and Frees count calls since the program began, and Bytes is the sum of the sizes
	// that Mallocs asked for. A realloc counts in both. They are exact, but for calls that run
	// meanwhile. With CHEAP_CMEM=ready they count since sampling began, frees of older blocks among them.
	Mallocs, Frees, Bytes int64

	// Live is an estimate of the bytes in use in blocks that were allocated since sampling began, and
	// LiveError its standard deviation. Each block counts with the size that was asked for.
	//
	// With CHEAP_CMEM=exact in the environment Live is exact, LiveError is 0, and Exact is set. Then
	// each block counts with the size that malloc_usable_size returns.
	Live, LiveError int64
	Exact           bool

	// Samples is how many blocks were sampled; Lost is how many were not, because there was no
	// memory to note them.
	Samples, Lost int64

	// LabelsCut is how many samples lack some of the labels of their goroutine, or have a part of one. See [LabelsOff].
	LabelsCut int64

	// Mmaps and Munmaps count calls of mmap and munmap, but for those of the C library itself and of the runtime of
	// Go. A mremap that makes a mapping longer is an mmap. Mapped is an estimate of the bytes of address space that are
	// mapped in this way since sampling began, and MappedError its standard deviation. [Mapped] has more.
	Mmaps, Munmaps      int64
	Mapped, MappedError int64
}

// Off says in a sentence why this package does nothing in this process. It is "" where it works.
func Off() string { return off() }

// LabelsOff says in a sentence why samples do not have the labels that pprof.Do, or pprof.SetGoroutineLabels, has set on
// the goroutine that has called C. It is "" where they have them: with Go 1.26 and 1.27, and with each later version that keeps
// them in the same form. What C allocates in threads of its own has none.
//
// A profile tells samples with different labels apart: go tool pprof -tagfocus=tenant=42, or -tagroot=tenant. A sample has up
// to 16 labels, with keys of 128 bytes and values of 256, 1,024 bytes together. Of each key 1,000 values are told apart, and the others are
// "[other values]". Of a goroutine 64 labels are looked at. All labels of the process take up to a MiB, and 32,768 stacks have some; what comes later has none.
//
// A program that sets something else in place of the runtime's labels, by a linkname into the runtime, must not use this package.
func LabelsOff() string { return labelsOff() }

// ReadStats returns the counts. It takes some nanoseconds for each thread of the process.
func ReadStats() Stats { return read() }

// DefaultRate is the rate that a program begins with: one sample for 512 KiB that are allocated, as
// in the profile of the Go heap.
const DefaultRate = sample.DefaultRate

// SetRate sets the mean number of bytes between two samples, and returns the old one. 1 samples
// every block, and 0 none. A thread reads the rate again when it has allocated 256 KiB, at the
// latest.
//
// A block of s bytes is sampled with the probability 1 − exp(−s/rate), and counts for the
// inverse of that many blocks. So all estimates are without bias, whatever the sizes are, and
// with a rate of 1 they are exact.
func SetRate(bytes int) (old int) { return int(setRate(int64(max(0, bytes)))) }

// Rate returns what SetRate has set.
func Rate() int { return int(rate()) }

// A site is a stack that has allocated, innermost frame first.
type site struct {
	number int            // stacks are numbered in the order in which they were seen first
	id     uintptr        // another number, which ranges has
	plain  uintptr        // that of the same stack without labels
	labels unsafe.Pointer // for labelsOf

	c, goPart []uintptr // return addresses

	counts

	stale   bool   // a library was unloaded since the stack was seen first
	library string // set by snapshot
}

type counts struct {
	allocs, allocBytes, allocVar float64 // allocVar is the variance of allocBytes
	frees, freeBytes, freeVar    float64 // the same of the blocks that were freed
}

func (c *counts) add(d *counts) {
	c.allocs += d.allocs
	c.allocBytes += d.allocBytes
	c.allocVar += d.allocVar
	c.frees += d.frees
	c.freeBytes += d.freeBytes
	c.freeVar += d.freeVar
}

// unlabelled is each without the stacks with labels: what they count is added to the same stack without, which is older.
func unlabelled(each func(func(*site))) func(func(*site)) {
	return func(f func(*site)) {
		var labelled map[uintptr]*counts // by the id of the stack without
		each(func(s *site) {
			if s.labels == nil {
				if c := labelled[s.id]; c != nil {
					s.add(c)
				}
				f(s)
				return
			}
			if labelled == nil {
				labelled = map[uintptr]*counts{}
			}
			if c := labelled[s.plain]; c != nil {
				c.add(&s.counts)
			} else {
				c := s.counts
				labelled[s.plain] = &c
			}
		})
	}
}

// live returns the bytes in use, an estimate, and its variance.
func (s *site) live() (bytes, variance float64) {
	return max(0, s.allocBytes-s.freeBytes), max(0, s.allocVar-s.freeVar)
}

// known returns the site without the addresses of C in a library that may have been unloaded since
// the stack was seen first. They are 0, because another library may lie there now.
func (s *site) known() *heapprofile.Site {
	c, goPart := s.c, s.goPart
	if s.stale {
		c, goPart = slices.Clone(s.c), slices.Clone(s.goPart)
		hide(c)
		for kind, pcs := range heapprofile.Parts(goPart) {
			if kind == heapprofile.CPart {
				hide(pcs)
			}
		}
	}
	return &heapprofile.Site{
		C: c, Go: goPart, Library: s.library, Labels: labelsOf(s.labels),
		Allocs: s.allocs, AllocBytes: s.allocBytes, Frees: s.frees, FreeBytes: s.freeBytes,
	}
}

// hide sets those addresses to 0 whose library may have been unloaded.
func hide(pcs []uintptr) {
	for i, pc := range pcs {
		if !initial(pc) {
			pcs[i] = 0
		}
	}
}
