package measure

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime/pprof"
	"time"

	"github.com/google/pprof/profile"
)

// enoughProfile is the CPU time that a row is profiled for, unless Options says otherwise, in at
// most mostProfiles rounds: a second has 100 samples.
const (
	enoughProfile = time.Second
	mostProfiles  = 10
)

// underProfile runs rounds of the unit with the profiler on, after the rounds that
// are timed. The labels of a sample name its row.
func (u *unit) underProfile(ctx context.Context, o *Options) (*profile.Profile, error) {
	var parts []*profile.Profile
	enough := float64(cmp.Or(o.ProfileTime, enoughProfile))
	// The profiler is slow to stop, so a round is long.
	n := u.n * min(max(int(enough/u.samples[len(u.samples)-1].Wall), 1), 100)
	for spent := 0.0; spent < enough && len(parts) < mostProfiles; {
		setProcs(u.procs)
		if err := quiet(ctx); err != nil {
			return nil, err
		}
		trimMalloc()
		var buf bytes.Buffer
		if err := pprof.StartCPUProfile(&buf); err != nil {
			return nil, err
		}
		s, err := u.takeNow(n)
		pprof.StopCPUProfile()
		if err != nil {
			return nil, err
		}
		part, err := profile.Parse(&buf)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
		spent += max(s.CPU, s.Wall/2) // CPU time is not known everywhere
	}
	whole, err := profile.Merge(parts)
	if err != nil {
		return nil, err
	}
	for _, s := range whole.Sample {
		s.Label = map[string][]string{"row": {u.String()}, "procs": {fmt.Sprint(u.procs)}}
	}
	return whole, nil
}

// writeProfile merges the profiles of all units.
func writeProfile(w io.Writer, units []*unit) error {
	var all []*profile.Profile
	for _, u := range units {
		if u.profile != nil {
			all = append(all, u.profile)
		}
	}
	if len(all) == 0 {
		return nil
	}
	whole, err := profile.Merge(all)
	if err != nil {
		return err
	}
	return whole.Write(w)
}
