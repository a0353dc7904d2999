package measure

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/result"
)

// A profiled says where a unit's CPU time went.
type profiled struct {
	profile *profile.Profile
	shares  []result.Share
}

// enoughProfile is the CPU time that a row is profiled for, unless Options says otherwise, in at
// most mostProfiles rounds: a second has 100 samples.
const (
	enoughProfile = time.Second
	mostProfiles  = 10
)

// underProfile runs rounds of the unit with the profiler on, after the rounds that
// are timed.
func (u *unit) underProfile(ctx context.Context, o *Options) (profiled, error) {
	var parts []*profile.Profile
	enough := float64(cmp.Or(o.ProfileTime, enoughProfile))
	n := u.profileN(enough)
	for spent := 0.0; spent < enough && len(parts) < mostProfiles; {
		part, s, err := u.profileRound(ctx, o, n)
		if err != nil {
			return profiled{}, err
		}
		parts = append(parts, part)
		spent += max(s.CPU, s.Wall/2) // CPU time is not known everywhere
	}
	whole, err := profile.Merge(parts)
	if err != nil {
		return profiled{}, err
	}
	for _, s := range whole.Sample {
		s.Label = map[string][]string{"row": {u.String()}, "procs": {fmt.Sprint(u.procs)}}
	}
	return profiled{whole, shares(whole)}, nil
}

// profileN returns how many operations a round under the profiler has, which is
// slow to stop: as many rounds' as take long enough, but no more than the memory
// of a row that leaks allows.
func (u *unit) profileN(enough float64) int {
	most := 100
	if u.row.NoGC {
		most = 10
	}
	last := u.samples[len(u.samples)-1]
	return u.n * min(max(int(enough/last.Wall), 1), most)
}

// profileRound runs one round with the profiler on.
func (u *unit) profileRound(ctx context.Context, o *Options, n int) (*profile.Profile, sample, error) {
	if u.row.NoGC {
		return u.profileApart(ctx, o, n)
	}
	setProcs(u.procs)
	if err := quiet(ctx); err != nil {
		return nil, sample{}, err
	}
	trimMalloc()
	var s sample
	var buf bytes.Buffer
	err := underProfile(&buf, func() (err error) {
		s, err = u.takeNow(n)
		return err
	})
	if err != nil {
		return nil, s, err
	}
	p, err := profile.Parse(&buf)
	return p, s, err
}

// profileApart does that in a process of its own.
func (u *unit) profileApart(ctx context.Context, o *Options, n int) (*profile.Profile, sample, error) {
	f, err := os.CreateTemp("", "cheap-bench-*.pprof")
	if err != nil {
		return nil, sample{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	s, err := u.apart(ctx, o, n, f.Name())
	if err != nil {
		return nil, s, err
	}
	p, err := profile.Parse(f)
	return p, s, err
}

// underProfile profiles run.
func underProfile(w io.Writer, run func() error) error {
	if err := pprof.StartCPUProfile(w); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return run()
}

// writeProfile merges the profiles of all units. The labels of a sample name its
// row.
func writeProfile(w io.Writer, units []*unit) error {
	var all []*profile.Profile
	for _, u := range units {
		if u.profile.profile != nil {
			all = append(all, u.profile.profile)
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

// shares returns the shares of functions and groups of functions in a profile.
// Those below 1 % are added up as other.
func shares(p *profile.Profile) []result.Share {
	const least = 0.01
	sum := make(map[string]int64)
	var total int64
	for _, s := range p.Sample {
		ns := s.Value[len(s.Value)-1] // the first is the number of samples
		total += ns
		sum[part(stack(s))] += ns
	}
	if total == 0 {
		return nil
	}
	var out []result.Share
	others := 0.0
	for name, ns := range sum {
		if share := float64(ns) / float64(total); share >= least && name != otherParts {
			out = append(out, result.Share{Function: name, Share: share})
		} else {
			others += share
		}
	}
	slices.SortFunc(out, func(a, b result.Share) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Function, b.Function))
	})
	if others > 0 {
		out = append(out, result.Share{Function: otherParts, Share: others})
	}
	return out
}

// stack returns the functions of a sample, the innermost first, inlined ones
// included.
func stack(s *profile.Sample) []string {
	var names []string
	for _, at := range s.Location {
		for _, line := range at.Line {
			if line.Function != nil {
				names = append(names, line.Function.Name)
			}
		}
	}
	return names
}
