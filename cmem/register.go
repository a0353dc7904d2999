package cmem

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/google/pprof/profile"
)

// Package inspect does not import this package. It shows the C heap if this package is in the program.
func init() {
	census.SetCHeap(counted{})
	switch v := os.Getenv("CHEAP_CMEM"); v { // start.c and exact.c read it, before
	case "", "off", "ready", "exact":
	default:
		fmt.Fprintf(os.Stderr, "cheap: CHEAP_CMEM is %q; it may be off, ready or exact\n", v)
	}
}

// counted is the C heap as package inspect sees it.
type counted struct{}

var (
	_ census.CMapper = counted{}
	_ census.CRater  = counted{}
)

func (counted) Off() string {
	if Off() == "" && waiting() {
		return "CHEAP_CMEM is ready in the environment: cmem.SetRate, or a POST of cmem on this page, turns it on"
	}
	return Off()
}

func (counted) Read() census.CCounts {
	s, more := ReadStats(), unseenLately()
	return census.CCounts{
		Mallocs: s.Mallocs, Frees: s.Frees, Bytes: s.Bytes,
		Live: s.Live + more, Held: held() + more, LiveError: s.LiveError, Samples: s.Samples, Lost: s.Lost,
	}
}

func (counted) SetRate(bytes int) (old int, err error) {
	if off := Off(); off != "" {
		return 0, errors.New(off)
	}
	return SetRate(bytes), nil
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

// mostLately bounds how many stacks get names that have grown lately. A program that does much at its start has many.
const mostLately = 5

func (counted) Watch(intervals int) func() (steady, lately []census.CSuspect) {
	w := NewWatch(intervals)
	list := func(all []*suspected) (list []census.CSuspect) {
		found, _ := named(all) // as above
		for _, s := range found {
			list = append(list, census.CSuspect{
				Library: s.Library, Live: s.Live, Grown: s.Grown, Error: s.GrownError, Stack: s.text(),
			})
		}
		return list
	}
	return func() (_, _ []census.CSuspect) {
		steady, lately := w.look(unlabelled(eachSite))
		slices.SortFunc(lately, func(x, y *suspected) int { return cmp.Compare(y.Grown, x.Grown) })
		return list(steady), list(lately[:min(mostLately, len(lately))])
	}
}

func (counted) WriteMappedProfile(w io.Writer) error { return WriteMappedProfile(w) }

// WriteMapped writes a table with a line for each library.
func (counted) WriteMapped(w io.Writer) error {
	all, err := Mapped()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "library\tallocator\tresident\taccessible\tmapped\tcalls\t")
	for _, l := range all {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t\n", l.Name, cmp.Or(l.Allocator, "-"), l.Resident, l.Accessible, l.Mapped, l.Calls)
	}
	_ = t.Flush() // an error of w is that of the next write, too
	p, err := process()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.Join(append(p.Allocators(), ""), "\n"))
	return err
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
