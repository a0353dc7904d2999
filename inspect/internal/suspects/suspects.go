// Package suspects reads who made the owners of package own, and who did not close them.
package suspects

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/watch/leaks"
)

// Read returns who made the open owners of all pools and memories, the most bytes first,
// and then who made owners that the collector had to release. It does not collect: owners that
// the program has forgotten, and the collector has not yet found, are open. It reads the
// entries of all pools, which takes about 20 ns for each.
func Read() []pagejson.Suspect {
	var all []pagejson.Suspect
	for _, p := range leaks.ReadPools() {
		first, closed, collected := len(all), int64(0), int64(0)
		for _, s := range p.Sites() {
			x := pagejson.Suspect{
				Pool: p.Name, Label: s.Label, Stack: stackText(s.PCs),
				Live: s.Live, Bytes: s.Bytes, Samples: s.Samples, Age: s.Age,
				Made: s.Made, Collected: s.Collected, PCs: s.PCs,
			}
			for _, u := range s.Uses {
				x.Uses = append(x.Uses, stackText(u))
			}
			all = append(all, x)
		}
		open := map[string]int64{} // by stack
		for _, s := range all[first:] {
			open[s.Stack] += s.Live
		}
		for i := range all[first:] {
			s := &all[first+i]
			if s.Made > 0 {
				s.Closed = max(s.Made-s.Collected-open[s.Stack], 0)
			}
			closed += s.Closed
			collected += s.Collected
		}
		for i := range all[first:] {
			s := &all[first+i]
			s.MissingClose = s.Collected > 0 && closed >= collected
		}
	}
	slices.SortStableFunc(all, func(x, y pagejson.Suspect) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(y.Live, x.Live), cmp.Compare(y.Collected, x.Collected))
	})
	return all
}

// stackText returns a stack in the format of a goroutine's trace.
func stackText(pcs []uintptr) string {
	if len(pcs) == 0 {
		return ""
	}
	var text strings.Builder
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		if f.Function == "runtime.main" || f.Function == "runtime.goexit" {
			return text.String() // as in the trace of a goroutine
		}
		fmt.Fprintf(&text, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return text.String()
		}
	}
}
