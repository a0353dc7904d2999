package cmem

import (
	"io"
	"time"

	"github.com/cheapgo/cheap/internal/census"
	"github.com/google/pprof/profile"
)

// Package inspect does not import this package. It shows the C heap if this package is in the program.
func init() { census.SetCHeap(counted{}) }

// counted is the C heap as package inspect sees it.
type counted struct{}

func (counted) Off() string { return Off() }

func (counted) Read() census.CCounts {
	s := Read()
	return census.CCounts{
		Mallocs: s.Mallocs, Frees: s.Frees, Bytes: s.Bytes,
		Live: s.Live, LiveError: s.LiveError, Samples: s.Samples, Lost: s.Lost,
	}
}

func (counted) Libraries(list []census.CLibrary) []census.CLibrary {
	all, _ := Libraries() // an error says that there is no /proc: then the list stays as it is
	for _, l := range all {
		list = append(list, census.CLibrary(l))
	}
	return list
}

func (counted) Top(n int) []census.CSuspect { return top(n) }

func (counted) WriteProfile(to io.Writer, d time.Duration, done <-chan struct{}) error {
	return writeFor(to, d, done)
}

func (counted) Watch(intervals int) func() []census.CSuspect {
	w := NewWatch(intervals)
	return func() (list []census.CSuspect) {
		all, _ := w.Look() // as above
		for _, s := range all {
			list = append(list, census.CSuspect{
				Library: s.Library, Live: s.Live, Grown: s.Grown, Error: s.GrownError, Stack: s.text(),
			})
		}
		return list
	}
}

// writeFor writes a profile: if d is not 0 of what changes from now until d has passed, or until
// done is closed.
func writeFor(to io.Writer, d time.Duration, done <-chan struct{}) error {
	p, err := Profile()
	if err == nil && d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-done:
		}
		var later *profile.Profile
		later, err = Since(p)
		p = later
	}
	if err != nil {
		return err
	}
	return p.Write(to)
}
