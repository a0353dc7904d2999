package explain

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/page/figure"
)

// callbacks is which functions of Go the calls of C call back.
type callbacks struct {
	classifier *classifier
	by         map[groupKey]map[string]float64 // the weight of each function, by the call of C
	inside     map[string]map[groupKey]float64 // that of the calls of C that a function makes
	total      map[groupKey]float64            // that of a call of C, wherever it is made
	goCode     map[string]float64              // that of the other code of a function
	outer      map[groupKey]groupKey           // the call of C that has called back, by one made there
	full       map[string]string               // the functions with their packages
}

func newCallbacks(k *classifier) *callbacks {
	return &callbacks{
		classifier: k, by: map[groupKey]map[string]float64{}, inside: map[string]map[groupKey]float64{},
		total: map[groupKey]float64{}, goCode: map[string]float64{},
		outer: map[groupKey]groupKey{}, full: map[string]string{},
	}
}

// add notes a stack with its key.
func (b *callbacks) add(stack []frame, key groupKey, c class, weight float64) {
	key.purpose = ""
	b.total[key] += weight
	i := slices.IndexFunc(stack, func(f frame) bool {
		return exportOf(f.function) != "" || f.isC && b.classifier.exports[f.function]
	})
	if i < 0 {
		return
	}
	name := cmp.Or(exportOf(stack[i].function), stack[i].function)
	if i > 0 && strings.HasSuffix(stack[i-1].function, "."+name) {
		b.full[name] = stack[i-1].function
	}
	from := keyOf(b.classifier.classify(stack[i+1:]))
	from.purpose = ""
	if b.by[from] == nil {
		b.by[from] = map[string]float64{}
	}
	b.by[from][name] += weight
	switch {
	case c.callee != "" && slices.ContainsFunc(stack[:i], func(f frame) bool { return isWrapper(f.function) }):
		if b.inside[name] == nil {
			b.inside[name] = map[groupKey]float64{}
		}
		b.inside[name][key] += weight
		b.outer[key] = from
	case c.mechanism != mechCallback && c.mechanism != mechC:
		b.goCode[name] += weight
	}
}

// By their names, functions stand for malloc and its like, and for free. What they call says less: an
// allocator may count, or have memory of its own.
var (
	namedAlloc = regexp.MustCompile(`(?i)(m|c|re)_?alloc$`)
	namedFree  = regexp.MustCompile(`(?i)(free|de_?alloc)$`)
)

// allocators returns which functions are parts of an allocator. A free without a malloc is a function
// that C calls for each object at its end.
func (b *callbacks) allocators() map[string]bool {
	found, alloc := map[string]bool{}, false
	for _, names := range b.by {
		for name := range names {
			found[name] = namedAlloc.MatchString(name) || namedFree.MatchString(name)
			alloc = alloc || namedAlloc.MatchString(name)
		}
	}
	if !alloc {
		clear(found)
	}
	return found
}

// adviseCallbacks is about calls of C that call back. What an allocator in Go takes, except for the
// allocator of C itself, is not there if C calls that one.
func (r *Report) adviseCallbacks(b *callbacks, total float64) {
	sites := map[groupKey]Site{}
	for _, s := range r.Sites {
		sites[groupKey{function: s.Function, file: s.File, line: s.Line, callee: s.Callee}] = s
	}
	allocator := 0.0
	allocators, isAllocator := map[string]bool{}, b.allocators()
	// What is noted last while C runs in a callback is the call there, also on the way back from it.
	shares := map[groupKey]float64{}
	for key, s := range sites {
		if outer, found := b.outer[key]; found && b.by[key] == nil {
			key = outer
		}
		shares[key] += s.Mechanisms[mechanismIndex(mechCallback)]
	}
	for key, callback := range shares {
		names, sum := b.by[key], 0.0
		for _, weight := range names {
			sum += weight
		}
		byAllocators := 0.0
		var others []string
		for name, weight := range names {
			if isAllocator[name] {
				if full := cmp.Or(b.full[name], name); !allocators[full] {
					allocators[full] = true
					allocator += b.ofFunction(name, sites, total)
				}
				byAllocators += weight / sum
			} else {
				others = append(others, name)
			}
		}
		allocator += callback * byAllocators
		callback *= 1 - byAllocators
		if callback <= 0 {
			continue
		}
		slices.SortFunc(others, func(a, b string) int { return cmp.Or(cmp.Compare(names[b], names[a]), cmp.Compare(a, b)) })
		whom, site := "Go", "threads of C"
		if key.function != "" {
			site = Site{Function: key.function, File: key.file, Line: key.line, Callee: key.callee}.place()
		}
		if len(others) > 0 {
			for i, name := range others {
				others[i] = cmp.Or(b.full[name], name)
			}
			whom = shortNames(others)
		}
		r.Advice = append(r.Advice, Advice{
			Site: site, Now: callback, Expected: callback / batch, Link: "docs/guide.md#which-way-to-pass-memory-to-c",
			Text:  fmt.Sprintf("C calls %s. If C writes what it finds to a buffer, for one callback in %d or for none, the rest of this share goes.", whom, batch),
			Basis: fmt.Sprintf("1/%d of the callbacks", batch),
		})
	}
	if len(allocators) == 0 {
		return
	}
	r.Advice = append(r.Advice, Advice{
		Site: shortNames(slices.Sorted(maps.Keys(allocators))) + ", which C calls", Now: allocator, Link: "docs/memory.md#in-your-own-program",
		Text:  "C allocates by functions of Go. Give C malloc, calloc, realloc and free themselves, as pointers to functions of C, or leave the allocator as it was. To count what C allocates, module cmem needs no callback.",
		Basis: "the callbacks, and what these functions do beside the allocator of C",
	})
}

// ofFunction returns the share of a function that C calls, without what it calls in C, and without the
// callbacks.
func (b *callbacks) ofFunction(name string, sites map[groupKey]Site, total float64) float64 {
	share := b.goCode[name] / total
	for key, weight := range b.inside[name] {
		if s, found := sites[key]; found && b.total[key] > 0 {
			share += (s.Share - s.Mechanisms[mechanismIndex(mechC)] - s.Mechanisms[mechanismIndex(mechCallback)]) * weight / b.total[key]
		}
	}
	return share
}

// shortNames lists up to three functions.
func shortNames(list []string) string {
	var names []string
	for _, name := range list[:min(3, len(list))] {
		names = append(names, shortName(name))
	}
	text := strings.Join(names, ", ")
	if more := len(list) - len(names); more > 0 {
		text += " and " + figure.Plural(more, "other")
	}
	return text
}
