package inspect

import (
	"context"
	"io"
	"reflect"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/inspect/internal/suspects"
	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/own"
)

// collectFor bounds the time for which the profile of leaks waits for releases.
const collectFor = 10 * time.Second

// WriteLeaks collects, as [Collect] does, and writes what [WriteSuspects] has as a profile that go tool pprof
// reads. Its values are live_objects, live_space, which is the default, and collected_objects:
// owners that the collector had to release, since their pool has a level. The labels are pool
// and label.
func WriteLeaks(w io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), collectFor)
	defer cancel()
	Collect(ctx) // what is not released by then is shown as open
	return leakProfile(suspects.Read()).Write(w)
}

// leakProfile makes a profile.
func leakProfile(all []pagejson.Suspect) *profile.Profile {
	b := newBuilder(
		&profile.ValueType{Type: "live_objects", Unit: "count"},
		&profile.ValueType{Type: "live_space", Unit: "bytes"},
		&profile.ValueType{Type: "collected_objects", Unit: "count"},
	)
	b.p.PeriodType, b.p.Period = nil, 0
	b.p.DefaultSampleType = "live_space"
	for _, s := range all {
		if s.Live == 0 && s.Collected == 0 {
			continue
		}
		sample := &profile.Sample{
			Value: []int64{s.Live, s.Bytes, s.Collected},
			Label: map[string][]string{"pool": {s.Pool}},
		}
		if s.Label != "" {
			sample.Label["label"] = []string{s.Label}
		}
		for _, pc := range s.PCs {
			l := b.locations[pc]
			if l == nil {
				// Each entry of runtime.Callers is one frame, also of a function that was
				// inlined. The frames behind the first are entries as well.
				f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
				l = b.intern(uint64(pc), b.frame(pc, f))
			}
			sample.Location = append(sample.Location, l)
		}
		if len(s.PCs) == 0 {
			sample.Location = append(sample.Location, b.intern(0, b.frame(0, runtime.Frame{Function: "(not recorded)"})))
		}
		b.p.Sample = append(b.p.Sample, sample)
	}
	return b.p
}

// frame returns a location with one frame.
func (b *builder) frame(pc uintptr, f runtime.Frame) *profile.Location {
	return &profile.Location{
		Mapping: b.mapping, Address: uint64(pc),
		Line: []profile.Line{{Function: b.function(f), Line: int64(f.Line)}},
	}
}

// register registers the profile cheapleak.
//
// Profile.Add of runtime/pprof takes the stack of its own caller, and counts each value once.
// To use it, package own would have to call it for each sampled owner, and Remove in Close,
// and each sample would take 300 bytes of the Go heap. The profiles of the runtime have
// functions instead, which return their contents when they are written. register sets such functions
// for this profile, in fields that are not exported. With a version of Go without these fields the
// profile is empty.
func register() {
	if pprof.Lookup("cheapleak") != nil {
		return // the program has one of that name
	}
	p := reflect.ValueOf(pprof.NewProfile("cheapleak")).Elem()
	setField(p.FieldByName("count"), func() int {
		n := int64(0)
		for _, p := range own.Pools() {
			n += p.Stats().Live
		}
		return int(n)
	})
	setField(p.FieldByName("write"), func(w io.Writer, debug int) error {
		if debug > 0 {
			return WriteSuspects(w)
		}
		return WriteLeaks(w)
	})
}

// setField sets a field of a structure, if there is one of the type of value.
func setField(field reflect.Value, value any) (ok bool) {
	if !field.IsValid() || field.Type() != reflect.TypeOf(value) {
		return false
	}
	// A field of that type, which reflect does not set because it is not exported.
	reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Set(reflect.ValueOf(value))
	return true
}
