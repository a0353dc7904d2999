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

// mostMapped returns the place whose addresses, mapped without malloc, have grown the most until the end, or else since a quarter
// of the time: what an allocator maps at its start, others fill. bytes is how much that is.
func (r *recording) mostMapped(process *heapprofile.Process, module string, moments []heappage.Moment) (place string, bytes int64) {
	sites, err := r.file.Mappings()
	if err != nil {
		return "", 0 // the same file was read for the rest of the report
	}
	b := process.NewBuilder(r.rate)
	all := map[string][]int64{} // by moment
	for i := range sites {
		at, by, _ := placeOf(b.Sample(&sites[i]), module)
		if by != "" {
			at += ", by " + by
		}
		series := append([]int64{0}, r.parts.timeline.of(i, len(sites), func(m *timelineMoment) []float64 { return m.mapped })...)
		series = append(series, int64(sites[i].AllocBytes-sites[i].FreeBytes))
		if all[at] == nil {
			all[at] = make([]int64, len(series))
		}
		for k, n := range series {
			all[at][k] += n
		}
	}
	grew, line, ofLine := false, "", int64(0) // the place in Go with the most
	for at, series := range all {
		_, by, ok := heappage.Grew(series, moments, 1)
		if !ok {
			by = series[len(series)-1] - series[len(series)/4]
		}
		if ok && !grew || ok == grew && (by > bytes || by == bytes && at < place) {
			place, bytes, grew = at, by, ok
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

// reportMapped says which libraries have mapped memory without malloc, and how much at most: addresses, of which a part
// may have no memory.
func (r *recording) reportMapped(line func(label, format string, args ...any)) {
	if r.file == nil {
		return
	}
	sites, err := r.file.Mappings()
	if err != nil {
		return // the same file was read for the rest of the report
	}
	process, err := r.file.Process(r.program)
	if err != nil {
		return
	}
	type key struct{ library, allocator string }
	peak, end := map[key]int64{}, map[key]int64{}
	for i := range sites {
		s := &sites[i]
		k := key{process.Library(s), process.Allocator(s)}
		peak[k] += int64(s.PeakBytes)
		end[k] += int64(s.AllocBytes - s.FreeBytes)
	}
	var all []key
	for k, n := range peak {
		if max(n, end[k]) >= leastMapped {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(x, y key) int {
		return cmp.Or(cmp.Compare(peak[y], peak[x]), cmp.Compare(x.library, y.library), cmp.Compare(x.allocator, y.allocator))
	})
	label := "mapped"
	for _, k := range all[:min(len(all), mostLibraries)] {
		name := k.library
		if k.allocator != "" {
			name += ", by " + k.allocator
		}
		line(label, "%10s  %s, without malloc; %s at the end", byteCount(peak[k]), figure.Printable(name), byteCount(end[k]))
		label = ""
	}
	for _, a := range process.Allocators() {
		line("allocator", "%s", figure.Printable(a))
	}
}
