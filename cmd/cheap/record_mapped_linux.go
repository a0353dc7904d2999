//go:build amd64 || arm64

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/heappage"
)

// leastMapped is from how many bytes on the report has what a library has mapped.
const leastMapped = 1 << 20

// A mapped is what a library has mapped without malloc: addresses, of which a part may have no memory.
type mapped struct {
	library   string // and its allocator
	peak, end int64
}

// addMapped adds a stack to those of its library.
func (r *recording) addMapped(process *heapprofile.Process, s *heapprofile.Site) {
	library := process.Library(s)
	if by := process.Allocator(s); by != "" {
		library += ", by " + by
	}
	k := slices.IndexFunc(r.mapped, func(m *mapped) bool { return m.library == library })
	if k < 0 {
		k, r.mapped = len(r.mapped), append(r.mapped, &mapped{library: library})
	}
	r.mapped[k].peak += int64(s.PeakBytes)
	r.mapped[k].end += int64(s.AllocBytes - s.FreeBytes)
}

// mostMapped sets what libraries have mapped, and returns the place whose addresses, mapped without malloc, have grown the most, and
// by how much.
func (r *recording) mostMapped(process *heapprofile.Process, module string, t *timeline, moments []heappage.Moment) (place string, bytes int64) {
	r.allocators = process.Allocators()
	sites, err := r.file.Mappings()
	if err != nil {
		return "", 0 // the same file was read for the rest of the report
	}
	b := process.NewBuilder(r.rate)
	all := map[string][]int64{} // by moment
	for i := range sites {
		r.addMapped(process, &sites[i])
		at, by, _ := placeOf(b.Sample(&sites[i]), module)
		if by != "" {
			at += ", by " + by
		}
		series := append([]int64{0}, t.of(i, len(sites), func(m *timelineMoment) []float64 { return m.mapped })...)
		series = append(series, int64(sites[i].AllocBytes-sites[i].FreeBytes))
		if all[at] == nil {
			all[at] = make([]int64, len(series))
		}
		for k, n := range series {
			all[at][k] += n
		}
	}
	return mostGrown(all, moments)
}

// mostGrown returns the place that has grown the most until the end, or else since a quarter of the time, but for its largest step:
// what an allocator maps at its start, others fill.
func mostGrown(all map[string][]int64, moments []heappage.Moment) (place string, bytes int64) {
	grew, most, line, ofLine := false, int64(-1), "", int64(0) // line: the place in Go with the most
	for at, series := range all {
		_, by, ok := heappage.Grew(series, moments, 1)
		steady := by
		if !ok {
			step, since := int64(0), series[len(series)/4:]
			for k, n := range since[1:] {
				step = max(step, n-since[k])
			}
			by = since[len(since)-1] - since[0]
			steady = by - step
		}
		if ok && !grew || ok == grew && (steady > most || steady == most && (by > bytes || by == bytes && at < place)) {
			place, bytes, grew, most = at, by, ok, steady
		}
		if strings.Contains(at, ".go:") && (by > ofLine || by == ofLine && at < line) {
			line, ofLine = at, by
		}
	}
	if line != "" && line != place && ofLine > bytes/4 && !strings.Contains(place, ".go:") { // a thread of an allocator
		place += fmt.Sprintf(", and %s by %s", byteCount(ofLine), line)
	}
	return place, bytes
}

// reportMapped says which libraries have mapped memory without malloc, and how much at most.
func (r *recording) reportMapped(line func(label, format string, args ...any)) {
	slices.SortFunc(r.mapped, func(x, y *mapped) int {
		return cmp.Or(cmp.Compare(y.peak, x.peak), cmp.Compare(x.library, y.library))
	})
	label := "mapped"
	for _, m := range r.mapped[:min(len(r.mapped), mostLibraries)] {
		if max(m.peak, m.end) >= leastMapped {
			line(label, "%10s  %s, without malloc; %s at the end", byteCount(m.peak), figure.Printable(m.library), byteCount(m.end))
			label = ""
		}
	}
	for _, a := range r.allocators {
		line("allocator", "%s", figure.Printable(a))
	}
}
