// Package calibrator measures calls of C that do nothing: their price, and what a CPU profile
// of them shows. Main runs in a process of its own, which another version of Go may have built
// from the source of the package: it requires the standard library only.
package calibrator

import (
	"bytes"
	"embed"
	"encoding/json"
	"io"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"
)

// Source is the source of the package.
//
//go:embed *.go *.c *.h
var Source embed.FS

// A Result is what Main has measured.
type Result struct {
	Go         string
	Kinds      []Kind // of functions: without a result, with a small one, with a large one
	CallbackNs float64
	Callbacks  []byte // a CPU profile of callbacks
}

// A Kind is what was measured of calls of one kind of function.
type Kind struct {
	CallNs float64 // the time of a call, what C does for it included
	CNs    float64 // what C does in a call that does nothing
	Calls  []byte  // a CPU profile of calls
}

type loop struct{ calls, inC func(n int) }

// How often the process is interrupted for the profile.
const (
	hertz = 500  // by the profiler; Linux has no more signals than ticks of its clock
	often = 2000 // by interrupt
)

// Main measures for some time, and writes a Result as JSON. The runtime complains on stderr that
// the rate of the profile is set twice.
func Main(w io.Writer, length time.Duration) error {
	kinds, callbacks, err := loops()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	r := Result{Go: runtime.Version()}
	parts := []func(n int){callbacks}
	for _, k := range kinds {
		parts = append(parts, k.calls, k.inC)
	}
	ns := timed(length/8, parts...)
	r.Kinds = make([]Kind, len(kinds))
	for i, k := range kinds {
		if r.Kinds[i].Calls, err = profiled(length/2/time.Duration(len(kinds)), k.calls); err != nil {
			return err
		}
	}
	if r.Callbacks, err = profiled(length/4, callbacks); err != nil {
		return err
	}
	for i, more := range timed(length/8, parts...) {
		ns[i] = min(ns[i], more)
	}
	r.CallbackNs = ns[0]
	for i := range r.Kinds {
		r.Kinds[i].CallNs, r.Kinds[i].CNs = ns[1+2*i], ns[2+2*i]
	}
	return json.NewEncoder(w).Encode(r)
}

// batch is how many calls are made before a loop looks at the clock.
const batch = 2000

// timed returns the nanoseconds of each loop, in turns, the lower quartile of its rounds: other
// programs on the machine make some longer.
func timed(length time.Duration, loops ...func(n int)) []float64 {
	all := make([][]float64, len(loops))
	for start := time.Now(); time.Since(start) < length; {
		for i, loop := range loops {
			t := time.Now()
			loop(batch)
			all[i] = append(all[i], float64(time.Since(t))/batch)
		}
	}
	ns := make([]float64, len(loops))
	for i := range all {
		slices.Sort(all[i])
		ns[i] = all[i][len(all[i])/4]
	}
	return ns
}

// profiled returns a CPU profile of a loop.
func profiled(length time.Duration, loop func(n int)) ([]byte, error) {
	var buf bytes.Buffer
	runtime.SetCPUProfileRate(hertz) // StartCPUProfile alone would set 100
	if err := pprof.StartCPUProfile(&buf); err != nil {
		return nil, err
	}
	end := interrupt(often)
	for start := time.Now(); time.Since(start) < length; {
		loop(batch)
	}
	end()
	pprof.StopCPUProfile()
	return buf.Bytes(), nil
}
