// Package heapprofile makes profiles of what [github.com/cheapgo/cheap/cmem] and the command cheap
// record have seen of the C heap of a process. Programs need package cmem alone.
package heapprofile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// A Site is a stack that has allocated, innermost frame first. All numbers are estimates, and since
// sampling began.
type Site struct {
	C []uintptr // return addresses; 0 in a library that was unloaded
	// Go is what follows: return addresses of Go; where C has called Go, the number of addresses of C, and these; and
	// the name of the thread. See [Parts].
	Go []uintptr

	Library string // "" if it is to be found from the addresses
	Labels  []Label

	Allocs, AllocBytes, Frees, FreeBytes float64

	PeakBytes float64 // in use when all sites together had the most
}

// A Label is one that the goroutine had.
type Label struct{ Key, Value string }

// A Frame is a function of Go, and where it has called the next one.
type Frame struct {
	Function, File string
	Line           int
}

// A Process is what is known of a process. It does not change while it is used.
type Process struct {
	Mappings []Mapping // by address
	Program  string    // the file of the program, as in Mappings
	Peak     bool      // whether the PeakBytes of sites are known

	// Frames returns the functions at a return address in Go code, innermost first.
	Frames func(pc uintptr) []Frame
}

// Mapped reports whether the function of a return address lies in a mapping.
func (p *Process) Mapped(pc uintptr) bool { return mappingOf(p.Mappings, uint64(pc-1)) != nil }

// Profile returns a profile of the sites, which were sampled with that rate, in bytes.
func (p *Process) Profile(sites []Site, rate int) (*profile.Profile, error) {
	b := p.NewBuilder(rate)
	for i := range sites {
		b.Add(&sites[i])
	}
	return b.Profile()
}

// A Library is what the C code of one file holds.
type Library struct {
	Name   string // of the file, without its folder; or [AskedByGo]
	Live   int64  // bytes in use
	Blocks int64  // in use
	Allocs int64  // bytes allocated
	Calls  int64  // that have allocated
	Peak   int64  // bytes in use when all libraries together had the most
}

// Libraries adds the sites up by library, those that hold the most first.
func (p *Process) Libraries(sites []Site) []Library {
	byName := map[string]*Library{}
	for i := range sites {
		s := &sites[i]
		name := p.Library(s)
		if byName[name] == nil {
			byName[name] = &Library{Name: name}
		}
		l := byName[name]
		l.Live += round(s.AllocBytes - s.FreeBytes)
		l.Blocks += round(s.Allocs - s.Frees)
		l.Allocs += round(s.AllocBytes)
		l.Calls += round(s.Allocs)
		l.Peak += round(s.PeakBytes)
	}
	var all []Library
	for _, l := range byName {
		all = append(all, *l)
	}
	slices.SortFunc(all, func(x, y Library) int {
		return cmp.Or(cmp.Compare(y.Live, x.Live), cmp.Compare(y.Allocs, x.Allocs), strings.Compare(x.Name, y.Name))
	})
	return all
}

// A Builder makes a profile, site by site. One goroutine at a time may use it.
type Builder struct {
	p         *profile.Profile
	process   *Process
	byMapping map[*Mapping]*profile.Mapping
	locations map[locationKey]*profile.Location
	functions map[string]*profile.Function
	threads   map[string]*profile.Location
}

// NewBuilder returns a Builder for sites that were sampled with that rate, in bytes.
func (p *Process) NewBuilder(rate int) *Builder {
	b := &Builder{
		process: p,
		p: &profile.Profile{
			SampleType: []*profile.ValueType{
				{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"},
				{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"},
			},
			DefaultSampleType: "inuse_space",
			PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
			Period:            int64(rate),
			TimeNanos:         time.Now().UnixNano(),
		},
		byMapping: map[*Mapping]*profile.Mapping{},
		locations: map[locationKey]*profile.Location{},
		functions: map[string]*profile.Function{},
		threads:   map[string]*profile.Location{},
	}
	if p.Peak {
		b.p.SampleType = append(b.p.SampleType, &profile.ValueType{Type: "peak_space", Unit: "bytes"})
	}
	// go tool pprof takes the first mapping for the program that its arguments name.
	for i, m := range p.Mappings {
		if m.File == p.Program {
			b.mapping(&p.Mappings[i])
			break
		}
	}
	return b
}

// Profile returns the profile, the sites that hold the most first. The Builder must not be used
// afterwards.
func (b *Builder) Profile() (*profile.Profile, error) {
	slices.SortStableFunc(b.p.Sample, func(x, y *profile.Sample) int { return cmp.Compare(y.Value[3], x.Value[3]) })
	return b.p, b.p.CheckValid()
}

// A locationKey tells locations apart. The same address may be in the C part of one stack and in the Go
// part of another.
type locationKey struct {
	pc uintptr
	of locationKind
}

type locationKind int

const (
	inC locationKind = iota
	inGo
	calledFromC
)

// Add adds a site to the profile, unless it has no block.
func (b *Builder) Add(s *Site) {
	if round(s.Allocs) != 0 {
		b.p.Sample = append(b.p.Sample, b.Sample(s))
	}
}

// Sample returns what Add would add.
func (b *Builder) Sample(s *Site) *profile.Sample {
	sample := &profile.Sample{
		Value: []int64{round(s.Allocs), round(s.AllocBytes), round(s.Allocs - s.Frees), round(s.AllocBytes - s.FreeBytes)},
		Label: map[string][]string{"library": {b.process.Library(s)}},
	}
	for _, l := range s.Labels {
		sample.Label[l.Key] = append(sample.Label[l.Key], l.Value) // the library comes first
	}
	if b.process.Peak {
		sample.Value = append(sample.Value, round(s.PeakBytes))
	}
	for _, pc := range s.C {
		sample.Location = append(sample.Location, b.location(locationKey{pc, inC}))
	}
	for kind, pcs := range Parts(s.Go) {
		sample.Location = append(sample.Location, b.part(kind, pcs)...)
	}
	if len(s.C)+len(s.Go) == 0 {
		sample.Location = append(sample.Location, b.location(locationKey{1, calledFromC}))
	}
	return sample
}

// Unseen is the name of the library of blocks that were allocated while nothing was sampled.
const Unseen = "allocated before sampling"

// AddUnseen adds bytes in use of blocks that were allocated while nothing was sampled.
func (b *Builder) AddUnseen(bytes int64) {
	l := &profile.Location{ID: uint64(len(b.p.Location) + 1)}
	l.Line = []profile.Line{{Function: b.function("["+Unseen+"]", "")}}
	b.p.Location = append(b.p.Location, l)
	values := make([]int64, len(b.p.SampleType))
	values[3] = bytes
	b.p.Sample = append(b.p.Sample, &profile.Sample{
		Location: []*profile.Location{l}, Value: values, Label: map[string][]string{"library": {Unseen}},
	})
}

// lowestCode is above the numbers that the Go part of a site can have, and below all addresses of code.
const lowestCode = 4096

// part returns the locations of a part of a stack.
func (b *Builder) part(kind Part, words []uintptr) (all []*profile.Location) {
	switch {
	case kind == ThreadPart:
		return []*profile.Location{b.thread(words)}
	case kind == CPart && len(words) == 0:
		return []*profile.Location{b.location(locationKey{0, calledFromC})}
	}
	for _, pc := range words {
		if kind == CPart {
			all = append(all, b.location(locationKey{pc, inC}))
			continue
		}
		l := b.location(locationKey{pc, inGo})
		if len(l.Line) == 0 || !isSwitch(l.Line[len(l.Line)-1].Function.Name) {
			all = append(all, l)
		}
	}
	return all
}

// thread returns the location that stands for a thread of that name.
func (b *Builder) thread(words []uintptr) *profile.Location {
	var name []byte
	for _, w := range words {
		name = binary.NativeEndian.AppendUint64(name, uint64(w))
		name = name[:len(name)-8+wordSize]
	}
	text := "[thread " + string(bytes.TrimRight(name, "\x00")) + "]"
	l := b.threads[text]
	if l == nil {
		l = &profile.Location{ID: uint64(len(b.p.Location) + 1), Line: []profile.Line{{Function: b.function(text, "")}}}
		b.threads[text] = l
		b.p.Location = append(b.p.Location, l)
	}
	return l
}

// A Part is a part of the Go part of a site.
type Part int

const (
	GoPart     Part = iota // return addresses of Go
	CPart                  // of C that has called Go; none if they are not known
	ThreadPart             // the name of the thread that C has made, in words
)

const (
	threadName = lowestCode - 1
	wordSize   = bits.UintSize / 8
	nameWords  = 16 / wordSize
)

// Parts returns the parts of the Go part of a site, innermost first.
func Parts(words []uintptr) iter.Seq2[Part, []uintptr] {
	return func(yield func(Part, []uintptr) bool) {
		for len(words) > 0 {
			n, kind := 0, GoPart
			switch w := words[0]; {
			case w >= lowestCode:
				for n < len(words) && words[n] >= lowestCode {
					n++
				}
			case w == threadName:
				words, n, kind = words[1:], nameWords, ThreadPart
			default:
				words, n, kind = words[1:], int(w), CPart
			}
			n = min(n, len(words))
			if !yield(kind, words[:n]) {
				return
			}
			words = words[n:]
		}
	}
}

func round(v float64) int64 { return int64(math.Round(max(0, v))) }

// location returns the location of a return address.
func (b *Builder) location(k locationKey) *profile.Location {
	if l := b.locations[k]; l != nil {
		return l
	}
	l := &profile.Location{ID: uint64(len(b.p.Location) + 1), Address: uint64(k.pc)}
	b.locations[k] = l
	b.p.Location = append(b.p.Location, l)
	switch {
	case k.of == calledFromC && k.pc == 0:
		l.Line = []profile.Line{{Function: b.function("[called from C]", "")}}
	case k.of == calledFromC:
		l.Address = 0
		l.Line = []profile.Line{{Function: b.function("[other stacks]", "")}}
	case k.pc == 0:
		l.Line = []profile.Line{{Function: b.function("[library that was unloaded]", "")}}
	case k.of == inGo:
		l.Mapping = b.mapping(mappingOf(b.process.Mappings, uint64(k.pc-1)))
		for _, f := range b.process.Frames(k.pc) {
			l.Line = append(l.Line, profile.Line{Function: b.function(f.Function, f.File), Line: int64(f.Line)})
		}
	default:
		m := mappingOf(b.process.Mappings, uint64(k.pc-1))
		l.Mapping = b.mapping(m)
		// A function without a symbol is named by its place in the file. If a mapping had a location
		// without a function, go tool pprof would ask the server that the profile comes from for its
		// name, and fail.
		name := m.function(uint64(k.pc - 1))
		switch {
		case name != "":
		case m == nil || m.File == "":
			name = "[memory without a file]"
		default:
			name = fmt.Sprintf("%s+%#x", filepath.Base(m.File), uint64(k.pc)-m.Start+m.Offset)
		}
		f := b.function(plainName(name), "")
		f.SystemName = name
		l.Line = []profile.Line{{Function: f}}
	}
	return l
}

func (b *Builder) mapping(m *Mapping) *profile.Mapping {
	if m == nil {
		return nil
	}
	pm := b.byMapping[m]
	if pm == nil {
		pm = &profile.Mapping{
			ID: uint64(len(b.p.Mapping) + 1), Start: m.Start, Limit: m.End, Offset: m.Offset, File: m.File,
			HasFunctions: true,
		}
		if m.symbols != nil {
			pm.BuildID = m.symbols.BuildID
		}
		if m.File == b.process.Program {
			pm.HasFilenames, pm.HasLineNumbers, pm.HasInlineFrames = true, true, true
		}
		b.byMapping[m] = pm
		b.p.Mapping = append(b.p.Mapping, pm)
	}
	return pm
}

func (b *Builder) function(name, file string) *profile.Function {
	k := name + "\x00" + file
	f := b.functions[k]
	if f == nil {
		f = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: name, SystemName: name, Filename: file}
		b.functions[k] = f
		b.p.Function = append(b.p.Function, f)
	}
	return f
}
