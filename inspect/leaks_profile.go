package inspect

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"encoding/json"

	"github.com/cheapgo/cheap/own"
)

// collectFor bounds the time for which the profile of leaks waits for releases.
const collectFor = 10 * time.Second

// WriteLeaks collects, as [Collect] does, and writes [Suspects] as a profile that go tool pprof
// reads. Its values are live_objects, live_space, which is the default, and collected_objects:
// owners that the collector had to release, since their pool has a level. The labels are pool
// and label.
func WriteLeaks(w io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), collectFor)
	defer cancel()
	Collect(ctx) // what is not released by then is shown as open
	return leakProfile(Suspects()).Write(w)
}

// leakProfile makes a profile.
func leakProfile(all []Suspect) *profile.Profile {
	m := &profile.Mapping{ID: 1, HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{
			{Type: "live_objects", Unit: "count"},
			{Type: "live_space", Unit: "bytes"},
			{Type: "collected_objects", Unit: "count"},
		},
		DefaultSampleType: "live_space",
		TimeNanos:         time.Now().UnixNano(),
		Mapping:           []*profile.Mapping{m},
	}
	locations := map[uintptr]*profile.Location{}
	functions := map[string]*profile.Function{}
	location := func(pc uintptr) *profile.Location {
		if l := locations[pc]; l != nil {
			return l
		}
		// Each entry of runtime.Callers is one frame, also of a function that was inlined.
		f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		key := f.Function + "\n" + f.File
		fn := functions[key]
		if fn == nil {
			fn = &profile.Function{ID: uint64(len(p.Function) + 1), Name: f.Function, SystemName: f.Function, Filename: f.File}
			functions[key] = fn
			p.Function = append(p.Function, fn)
		}
		l := &profile.Location{
			ID: uint64(len(p.Location) + 1), Mapping: m, Address: uint64(pc),
			Line: []profile.Line{{Function: fn, Line: int64(f.Line)}},
		}
		locations[pc] = l
		p.Location = append(p.Location, l)
		return l
	}
	unknown := &profile.Function{Name: "(not recorded)"}
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
		for _, pc := range s.pcs {
			sample.Location = append(sample.Location, location(pc))
		}
		if len(s.pcs) == 0 {
			if unknown.ID == 0 {
				unknown.ID = uint64(len(p.Function) + 1)
				p.Function = append(p.Function, unknown)
				l := &profile.Location{ID: uint64(len(p.Location) + 1), Mapping: m, Line: []profile.Line{{Function: unknown}}}
				locations[0] = l
				p.Location = append(p.Location, l)
			}
			sample.Location = []*profile.Location{locations[0]}
		}
		p.Sample = append(p.Sample, sample)
	}
	return p
}

// register registers the profile cheapleak.
//
// Profile.Add of runtime/pprof takes the stack of its own caller, and counts each value once.
// To use it, package own would have to call it for each sampled owner, and Remove in Close,
// and each sample would take 300 bytes of the Go heap. The profiles of the runtime have
// functions instead, that say what is in them when they are written. This profile gets such
// functions. Their fields are not exported. If a version of Go has no such fields, the
// profile is there, and empty.
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

// ServeLeaks answers with [WriteLeaks].
func ServeLeaks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="cheapleak.pb.gz"`)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	WriteLeaks(w) // an error is that of the connection
}

// ServeSuspects answers with [Suspects]: as text, or, if the query has format=json or the
// client accepts application/json only, as an array in JSON. With gc=1 in the query it collects
// first, as [Collect] does.
func ServeSuspects(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.FormValue("gc") == "1" {
		ctx, cancel := context.WithTimeout(r.Context(), collectFor)
		defer cancel()
		Collect(ctx) // what is not released by then is shown as open
	}
	if r.FormValue("format") == "json" || strings.TrimSpace(r.Header.Get("Accept")) == "application/json" {
		w.Header().Set("Content-Type", "application/json")
		all := Suspects()
		if all == nil {
			all = []Suspect{}
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		e.Encode(all) // an error is that of the connection
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	WriteSuspects(w) // likewise
}
