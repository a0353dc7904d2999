package heapprofile

import (
	"encoding/binary"
	"os"
	"slices"

	"github.com/cheapgo/cheap/internal/page/symbols"
	"github.com/cheapgo/cheap/internal/watch/procfs"
	"github.com/google/pprof/profile"
)

// Held is what a stack has mapped, in bytes.
type Held struct {
	Mapped     float64 // of address space
	Accessible float64 // of these, what can be read, written or run
	Resident   float64 // of these, what is in memory
}

// Add adds what a sample stands for.
func (h *Held) Add(of Held, weight float64) {
	h.Mapped += weight * of.Mapped
	h.Accessible += weight * of.Accessible
	h.Resident += weight * of.Resident
}

// LookAt says what the process has in each of n ranges of addresses, which come in order and do not overlap.
func LookAt(n int, at func(i int) (from, to uint64)) ([]Held, error) {
	all := make([]Held, n)
	if n == 0 {
		return all, nil
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pages, _ := os.Open("/proc/self/pagemap") // without it, the resident bytes of a part are in proportion
	if pages != nil {
		defer pages.Close()
	}
	i := 0
	err = procfs.Mappings(f, func(m procfs.Mapping) (more bool) {
		for ; i < n; i++ {
			from, to := at(i)
			if from >= m.End {
				break
			}
			from, to = max(from, m.Start), min(to, m.End)
			if from < to {
				all[i].look(&m, from, to, pages)
			}
			if _, to := at(i); to > m.End {
				break // it goes on in the next one
			}
		}
		return i < n
	})
	return all, err
}

// look adds what lies in [from, to) of a mapping.
func (h *Held) look(m *procfs.Mapping, from, to uint64, pages *os.File) {
	n := float64(to - from)
	h.Mapped += n
	if m.Read || m.Write || m.Exec {
		h.Accessible += n
	}
	switch whole := m.End - m.Start; {
	case m.Resident == 0:
	case to-from == whole:
		h.Resident += float64(m.Resident)
	case pages == nil:
		h.Resident += float64(m.Resident) * n / float64(whole)
	default:
		h.Resident += min(float64(m.Resident), residentPages(pages, from, to))
	}
}

// residentPages counts the bytes of pages that are in memory. The kernel joins mappings that are next to each other, so
// a range may be a part of what it lists.
func residentPages(pages *os.File, from, to uint64) (n float64) {
	page := uint64(os.Getpagesize())
	const entry, present = 8, 63
	words := make([]byte, 64<<10)
	for at := from / page; at < to/page; {
		want := min(uint64(len(words)), (to/page-at)*entry)
		got, _ := pages.ReadAt(words[:want], int64(at*entry))
		if got < entry {
			return n
		}
		for k := 0; k+entry <= got; k += entry {
			n += float64(binary.NativeEndian.Uint64(words[k:])>>present) * float64(page)
		}
		at += uint64(got / entry)
	}
	return n
}

// Allocator returns the allocator by which a stack has come to memory of its own, if it is known: one that a library
// brings, or one that was preloaded. "jemalloc (duckdb_je_)" has the prefix of its functions.
func (p *Process) Allocator(s *Site) string {
	var innermost *Mapping
	for _, pc := range s.C {
		if pc == 0 {
			continue
		}
		m := mappingOf(p.Mappings, uint64(pc-1))
		if name := symbols.AllocatorOf(m.function(uint64(pc - 1))); name != "" {
			return name
		}
		if innermost == nil {
			innermost = m
		}
	}
	if innermost == nil || innermost.File == p.Program {
		return "" // a program may have other functions that map memory
	}
	return innermost.allocator().Name
}

// Allocators says which allocators are in the files of a process, in a line for each.
func (p *Process) Allocators() (lines []string) {
	for i := range p.Mappings {
		m := &p.Mappings[i]
		if line := m.allocator().Line; line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// allocator returns the allocator in the file.
func (m *Mapping) allocator() symbols.Allocator { return symbols.AllocatorIn(m.File, nameOf(m.File)) }

// NewMappedBuilder returns a Builder for stacks that have mapped memory. AddMapped adds them.
func (p *Process) NewMappedBuilder(rate int) *Builder {
	b := p.NewBuilder(rate)
	b.p.SampleType = []*profile.ValueType{
		{Type: "mmap_calls", Unit: "count"}, {Type: "mmap_space", Unit: "bytes"},
		{Type: "mapped_space", Unit: "bytes"}, {Type: "resident_space", Unit: "bytes"},
		{Type: "accessible_space", Unit: "bytes"},
	}
	b.p.DefaultSampleType = "resident_space"
	return b
}

// AddMapped adds a stack that has made Allocs mappings of AllocBytes.
func (b *Builder) AddMapped(s *Site, h Held) {
	if round(s.Allocs) == 0 {
		return
	}
	sample := b.Sample(s)
	sample.Value = []int64{round(s.Allocs), round(s.AllocBytes), round(h.Mapped), round(h.Resident), round(h.Accessible)}
	if name := b.process.Allocator(s); name != "" {
		sample.Label["allocator"] = []string{name}
	}
	b.p.Sample = append(b.p.Sample, sample)
}
