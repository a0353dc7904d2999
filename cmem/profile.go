package cmem

import (
	"io"
	"runtime"

	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/google/pprof/profile"
)

// WriteProfile writes a profile of the C heap: which calls have allocated, how many blocks and
// bytes since sampling began, and how many of them are in use. A stack begins with the functions
// of C and goes on with those of Go that have called them. The numbers are estimates; see
// [SetRate].
//
// The bytes of [Unseen] are one sample, whose only frame says so.
//
// The format is that of pprof, compressed: go tool pprof reads it. Functions of Go have their
// names, files and lines. Functions of C have the names of the symbol tables, demangled; those of a stripped
// file are looked for in /usr/lib/debug. Where C has called Go, the functions of C follow those of Go, or the
// frame [called from C] stands for them.
func WriteProfile(w io.Writer) error {
	p, err := Profile()
	if err != nil {
		return err
	}
	return p.Write(w)
}

// Profile returns the profile that [WriteProfile] writes.
func Profile() (*profile.Profile, error) {
	all, p, err := snapshot(func(s *site) bool { return s.allocs != 0 })
	if err != nil {
		return nil, err
	}
	b := p.NewBuilder(Rate())
	for i := range all {
		b.Add(all[i].known())
	}
	if n, _ := Unseen(); n > 0 {
		b.AddUnseen(n)
	}
	return b.Profile()
}

// Since returns what has changed since base, which [Profile] has returned in this process: the
// difference of each value of each stack. go tool pprof -base does the same with two files. Blocks
// that were in use then and were freed since have negative values. The stacks of a library that was
// unloaded in between have lost their names: each is there twice, once with each sign.
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

// frames returns the functions of Go at a return address.
func frames(pc uintptr) []heapprofile.Frame {
	var all []heapprofile.Frame
	for _, pc := range inlined(pc) {
		next := runtime.CallersFrames([]uintptr{pc})
		if f, _ := next.Next(); f.Function != "" {
			all = append(all, heapprofile.Frame{Function: f.Function, File: f.File, Line: f.Line})
		}
	}
	return all
}
