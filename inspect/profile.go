package inspect

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/watch/sample"
	"github.com/google/pprof/profile"
)

// DefaultRate is the rate that costs next to nothing: one sample for 512 KiB that are
// allocated, as in the profile of the Go heap.
const DefaultRate = sample.DefaultRate

// SetRate has heaps sample their blocks, so that [WriteHeap] and [WriteLifetimes] have
// something to show, and returns the old rate. A rate is the number of bytes between two
// samples in the mean; 1 samples every block, and 0 none, which is what a program begins
// with. Blocks that were allocated before are not sampled.
//
// A block of s bytes is sampled with the probability 1 − exp(−s/rate), and counts for the
// inverse of that many blocks. So all numbers of the profiles are estimates without bias,
// whatever the sizes; with a rate of 1 they are exact.
//
// A sample takes about 0.3 microseconds, and 2 from a stack that is new. Sampled blocks lie in spans
// without other blocks: a heap has at least one such span of 64 KiB for each size class that was
// sampled, and counts it for its limit. Only the pages with a sampled block are
// resident. If the limit has no room for the span, the block is not sampled.
//
// At [DefaultRate] the records of samples and the pages without a sampled block in use take
// at most
//
//	512 KiB + 1/100 of the bytes in use
//
// without pages that were in use in the last 50 milliseconds. To that end, when a stack has allocated
// blocks of very many sizes, freed ones count as blocks of their mean size. Stacks above 1,000 take
// about 0.4 KiB more for each.
//
// The blocks of an Arena, a FixedBlock and an own.Memory lie in larger blocks of a heap,
// their chunks. A sample is of the chunk, and has the stack that has taken it.
//
// SetRate may be called at any time, from any goroutine.
func SetRate(bytes int) (old int) {
	return int(min(sample.SetRate(int64(bytes)), math.MaxInt))
}

// Rate returns what SetRate has set.
func Rate() int { return int(min(sample.Rate(), math.MaxInt)) }

// WriteHeap writes a profile of the blocks of all heaps: where they were allocated, how many
// blocks and bytes since the program began, and how many of them are in use. See [SetRate].
//
// The format is that of pprof, compressed: go tool pprof reads it. A sample has the labels
// heap and, if a pool of package own has allocated the block, pool; and the number bytes,
// the size of a block.
func WriteHeap(w io.Writer) error { return Heap().Write(w) }

// WriteLifetimes writes a profile of how long blocks lived that have been freed: for each
// place that allocates, the number of blocks, their bytes, and the sum of their lives in
// nanoseconds. A sample has the label lifetime, a range such as 1ms-10ms, besides those of
// [WriteHeap].
//
// Blocks that live shortly, and are freed where they were allocated, are cheaper in an
// arena: go tool pprof -tagfocus lifetime=0-10µs shows who allocates them.
func WriteLifetimes(w io.Writer) error { return Lifetimes().Write(w) }

// Heap returns the profile that [WriteHeap] writes.
func Heap() *profile.Profile {
	b := newBuilder(
		&profile.ValueType{Type: "alloc_objects", Unit: "count"},
		&profile.ValueType{Type: "alloc_space", Unit: "bytes"},
		&profile.ValueType{Type: "inuse_objects", Unit: "count"},
		&profile.ValueType{Type: "inuse_space", Unit: "bytes"},
	)
	b.p.DefaultSampleType = "inuse_space"
	for _, s := range sample.Sites() {
		inUse := max(0, s.Allocs-s.Frees)
		b.add(s, "", s.Allocs, s.Space, inUse, inUse*s.Space/s.Allocs)
	}
	return b.finish()
}

// Lifetimes returns the profile that [WriteLifetimes] writes.
func Lifetimes() *profile.Profile {
	b := newBuilder(
		&profile.ValueType{Type: "freed_objects", Unit: "count"},
		&profile.ValueType{Type: "freed_space", Unit: "bytes"},
		&profile.ValueType{Type: "lifetime", Unit: "nanoseconds"},
	)
	b.p.DefaultSampleType = "freed_objects"
	for _, s := range sample.Sites() {
		for i, l := range s.Lives {
			if l.Blocks > 0 {
				b.add(s, rangeOf(i), l.Blocks, l.Blocks*s.Space/s.Allocs, l.Total)
			}
		}
	}
	return b.finish()
}

// rangeOf names a range of lives.
func rangeOf(i int) string {
	from, to := time.Duration(0), sample.AgeLimit(i)
	if i > 0 {
		from = sample.AgeLimit(i - 1)
	}
	if to == 0 {
		return from.String() + "-"
	}
	if from == 0 {
		return "0-" + to.String()
	}
	return from.String() + "-" + to.String()
}

// A builder makes a profile.
type builder struct {
	p         *profile.Profile
	mapping   *profile.Mapping
	locations map[uintptr]*profile.Location
	functions map[string]*profile.Function
	samples   map[string]*profile.Sample
}

func newBuilder(types ...*profile.ValueType) *builder {
	m := &profile.Mapping{ID: 1, HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
	m.File, _ = os.Executable() // without it pprof shows no name
	return &builder{
		p: &profile.Profile{
			SampleType: types,
			PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"},
			Period:     sample.Rate(),
			TimeNanos:  time.Now().UnixNano(),
			Mapping:    []*profile.Mapping{m},
		},
		mapping:   m,
		locations: map[uintptr]*profile.Location{},
		functions: map[string]*profile.Function{},
		samples:   map[string]*profile.Sample{},
	}
}

// add adds values to the sample of a site with that range of lives.
func (b *builder) add(s sample.Site, lifetime string, values ...float64) {
	stack := b.stack(s.PCs)
	key := fmt.Sprint(s.Heap, "\x00", s.Pool, "\x00", s.Size, "\x00", lifetime)
	for _, l := range stack {
		key += fmt.Sprint("\x00", l.ID)
	}
	sm := b.samples[key]
	if sm == nil {
		sm = &profile.Sample{
			Location: stack,
			Value:    make([]int64, len(values)),
			Label:    map[string][]string{"heap": {s.Heap}},
			NumLabel: map[string][]int64{"bytes": {int64(s.Size)}},
			NumUnit:  map[string][]string{"bytes": {"bytes"}},
		}
		if s.Pool != "" {
			sm.Label["pool"] = []string{s.Pool}
		}
		if lifetime != "" {
			sm.Label["lifetime"] = []string{lifetime}
		}
		b.samples[key] = sm
		b.p.Sample = append(b.p.Sample, sm)
	}
	for i, v := range values {
		sm.Value[i] += int64(math.Round(v))
	}
}

// finish returns the profile.
func (b *builder) finish() *profile.Profile {
	slices.SortStableFunc(b.p.Sample, func(x, y *profile.Sample) int {
		return cmp.Compare(y.Value[len(y.Value)-1], x.Value[len(x.Value)-1])
	})
	return b.p
}

// stack returns the locations of a stack, without the frames of this module at its end.
func (b *builder) stack(pcs []uintptr) []*profile.Location {
	var all []*profile.Location
	for _, pc := range pcs {
		if l := b.location(pc); l != nil {
			all = append(all, l)
		}
	}
	for i, l := range all {
		if !slices.ContainsFunc(l.Line, func(n profile.Line) bool { return isOurs(n.Function.Name) }) {
			return all[i:]
		}
		// An inlined call of ours within a function of the program.
		if n := slices.IndexFunc(l.Line, func(n profile.Line) bool { return !isOurs(n.Function.Name) }); n >= 0 {
			cut := *l
			cut.Line = l.Line[n:]
			return append([]*profile.Location{b.intern(^cut.Address, &cut)}, all[i+1:]...)
		}
	}
	return all
}

// location returns the location of a program counter: one line for each function that was
// inlined there. It returns nil for one that is in no function.
func (b *builder) location(pc uintptr) *profile.Location {
	if l, ok := b.locations[pc]; ok {
		return l
	}
	l := &profile.Location{Mapping: b.mapping, Address: uint64(pc)}
	for frames := runtime.CallersFrames([]uintptr{pc}); ; {
		f, more := frames.Next()
		if f.Function != "" {
			l.Line = append(l.Line, profile.Line{Function: b.function(f), Line: int64(f.Line)})
		}
		if !more {
			break
		}
	}
	if l.Line == nil {
		b.locations[pc] = nil
		return nil
	}
	return b.intern(uint64(pc), l)
}

// intern numbers a location, and returns it, or the one that has the key already.
func (b *builder) intern(key uint64, l *profile.Location) *profile.Location {
	if have := b.locations[uintptr(key)]; have != nil {
		return have
	}
	b.locations[uintptr(key)] = l
	b.p.Location = append(b.p.Location, l)
	l.ID = uint64(len(b.p.Location))
	return l
}

func (b *builder) function(f runtime.Frame) *profile.Function {
	key := f.Function + "\x00" + f.File
	fn := b.functions[key]
	if fn == nil {
		fn = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: f.Function, SystemName: f.Function, Filename: f.File}
		if f.Func != nil {
			_, line := f.Func.FileLine(f.Func.Entry())
			fn.StartLine = int64(line)
		}
		b.functions[key] = fn
		b.p.Function = append(b.p.Function, fn)
	}
	return fn
}

// isOurs reports whether a function is one of this module's that allocate, or free, for a program.
// A replace line may give a drop-in the path of the original, which allocates nothing here.
func isOurs(function string) bool {
	if strings.HasPrefix(function, "github.com/CannibalVox/cgoalloc.") {
		return true
	}
	rest, ok := strings.CutPrefix(function, "github.com/cheapgo/cheap")
	if !ok {
		return false
	}
	for _, p := range []string{".", "/internal/", "/own.", "/own/internal/", "/libc.", "/inspect/leaktest.(*Allocator).", "/x/arrow.", "/x/cgoalloc."} {
		if strings.HasPrefix(rest, p) {
			return true
		}
	}
	return false
}
