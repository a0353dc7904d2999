package cmem

import (
	"cmp"
	"io"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/google/pprof/profile"
)

// WriteProfile writes a profile of the C heap: which calls have allocated, how many blocks and
// bytes since sampling began, and how many of them are in use. A stack begins with the functions
// of C and goes on with those of Go that have called them. The numbers are estimates; see
// [SetRate].
//
// The format is that of pprof, compressed: go tool pprof reads it. Functions of Go have their
// names, files and lines. Functions of C have the names of the symbol tables; where there is
// none, go tool pprof looks for the debug information of the file. A stack of Go that C has called
// ends with the frame [called from C].
func WriteProfile(w io.Writer) error {
	p, err := Profile()
	if err != nil {
		return err
	}
	return p.Write(w)
}

// Profile returns the profile that [WriteProfile] writes.
func Profile() (*profile.Profile, error) {
	b, err := newBuilder()
	if err != nil {
		return nil, err
	}
	eachSite(func(s *site) {
		if round(s.allocs) != 0 {
			b.p.Sample = append(b.p.Sample, b.sample(s))
		}
	})
	slices.SortStableFunc(b.p.Sample, func(x, y *profile.Sample) int { return cmp.Compare(y.Value[3], x.Value[3]) })
	return b.p, b.p.CheckValid()
}

// Since returns what has changed since base, which [Profile] has returned in this process: of each
// stack the differences. go tool pprof -base does the same with two files. What was in use then,
// and was freed since, is negative.
func Since(base *profile.Profile) (*profile.Profile, error) {
	now, err := Profile()
	if err != nil {
		return nil, err
	}
	was := base.Copy()
	was.Scale(-1)
	p, err := profile.Merge([]*profile.Profile{now, was})
	if err != nil {
		return nil, err
	}
	p.TimeNanos, p.DurationNanos = base.TimeNanos, now.TimeNanos-base.TimeNanos
	p.DefaultSampleType = now.DefaultSampleType
	return p, nil
}

// A builder makes a profile.
type builder struct {
	p         *profile.Profile
	maps      []mapping
	byMapping map[*mapping]*profile.Mapping
	locations map[key]*profile.Location
	functions map[string]*profile.Function
}

// A key tells locations apart: an address may be one of C and, by mistake of a library that was
// unloaded, one of Go.
type key struct {
	pc uintptr
	of kind
}

type kind int

const (
	inC kind = iota
	inGo
	calledFromC
)

func newBuilder() (*builder, error) {
	maps, err := mappings()
	if err != nil {
		return nil, err
	}
	return &builder{
		maps: maps,
		p: &profile.Profile{
			SampleType: []*profile.ValueType{
				{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"},
				{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"},
			},
			DefaultSampleType: "inuse_space",
			PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
			Period:            int64(Rate()),
			TimeNanos:         time.Now().UnixNano(),
		},
		byMapping: map[*mapping]*profile.Mapping{},
		locations: map[key]*profile.Location{},
		functions: map[string]*profile.Function{},
	}, nil
}

// sample returns what a stack has allocated.
func (b *builder) sample(s *site) *profile.Sample {
	sample := &profile.Sample{
		Value: []int64{round(s.allocs), round(s.allocBytes), round(s.allocs - s.frees), round(s.allocBytes - s.freeBytes)},
		Label: map[string][]string{"library": {library(b.maps, s.known())}},
	}
	for _, pc := range s.known() {
		sample.Location = append(sample.Location, b.location(key{pc, inC}))
	}
	for _, pc := range s.goPart {
		l := b.location(key{pc, inGo})
		name := ""
		if len(l.Line) > 0 {
			name = l.Line[len(l.Line)-1].Function.Name
		}
		if name == "runtime.cgocallback" || name == "crosscall2" {
			sample.Location = append(sample.Location, b.location(key{0, calledFromC}))
			break
		}
		if name != "runtime.cgocall" && name != "runtime.asmcgocall" {
			sample.Location = append(sample.Location, l)
		}
	}
	if len(s.c)+len(s.goPart) == 0 {
		sample.Location = append(sample.Location, b.location(key{1, calledFromC}))
	}
	return sample
}

func round(v float64) int64 { return int64(math.Round(max(0, v))) }

// location returns the location of a return address.
func (b *builder) location(k key) *profile.Location {
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
		l.Mapping = b.mapping(mappingOf(b.maps, uint64(k.pc-1)))
		for _, pc := range inlined(k.pc) {
			frames := runtime.CallersFrames([]uintptr{pc})
			if f, _ := frames.Next(); f.Function != "" {
				l.Line = append(l.Line, profile.Line{Function: b.function(f.Function, f.File), Line: int64(f.Line)})
			}
		}
	default:
		m := mappingOf(b.maps, uint64(k.pc-1))
		l.Mapping = b.mapping(m)
		if name := m.function(uint64(k.pc - 1)); name != "" {
			l.Line = []profile.Line{{Function: b.function(name, "")}}
		} else if l.Mapping != nil && m.file != b.self() {
			l.Mapping.HasFunctions = false // so that pprof looks for the name
		}
	}
	return l
}

func (b *builder) self() string { return executable() }

func (b *builder) mapping(m *mapping) *profile.Mapping {
	if m == nil {
		return nil
	}
	pm := b.byMapping[m]
	if pm == nil {
		pm = &profile.Mapping{
			ID: uint64(len(b.p.Mapping) + 1), Start: m.start, Limit: m.end, Offset: m.offset, File: m.file,
			HasFunctions: true,
		}
		if m.object != nil {
			pm.BuildID = m.object.buildID
		}
		if m.file == b.self() {
			pm.HasFilenames, pm.HasLineNumbers, pm.HasInlineFrames = true, true, true
		}
		b.byMapping[m] = pm
		b.p.Mapping = append(b.p.Mapping, pm)
	}
	return pm
}

func (b *builder) function(name, file string) *profile.Function {
	k := name + "\x00" + file
	f := b.functions[k]
	if f == nil {
		f = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: name, SystemName: name, Filename: file}
		b.functions[k] = f
		b.p.Function = append(b.p.Function, f)
	}
	return f
}
