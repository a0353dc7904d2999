package cmem

import (
	"slices"
	"sync"

	"github.com/cheapgo/cheap/internal/watch/census"
)

// names has the library and the text of the stacks that were ever among those with the most bytes in
// use, by their numbers. A program has few of them, and to find the names takes as long as to read
// /proc/self/maps. A name stays when its library is unloaded.
var names struct {
	sync.Mutex
	of map[int]stackName
}

type stackName struct{ library, text string }

// top returns the n stacks with the most bytes in use, with whatever labels, the largest first. It reads the counts of all
// stacks, some 20 ns for each, and looks for names where a stack is among the first for the first time.
func top(n int) []census.CSuspect {
	var most []census.CSuspect
	var numbers []int
	unlabelled(eachSite)(func(s *site) {
		live := s.allocBytes - s.freeBytes
		if n <= 0 || live <= 0 || len(most) == n && round(live) <= most[n-1].Live {
			return
		}
		at := len(most)
		for at > 0 && most[at-1].Live < round(live) {
			at--
		}
		most = slices.Insert(most, at, census.CSuspect{Live: round(live)})
		numbers = slices.Insert(numbers, at, s.number)
		most, numbers = most[:min(n, len(most))], numbers[:min(n, len(most))]
	})
	names.Lock()
	defer names.Unlock()
	isNew := func(number int) bool { _, has := names.of[number]; return !has }
	if slices.ContainsFunc(numbers, isNew) {
		findNames(func(s *site) bool { return slices.Contains(numbers, s.number) && isNew(s.number) })
	}
	for i, number := range numbers {
		most[i].Library, most[i].Stack = names.of[number].library, names.of[number].text
	}
	return most
}

// findNames finds the names of stacks. The lock of names is held.
func findNames(wanted func(*site) bool) {
	stacks, p, err := snapshot(wanted)
	if err != nil {
		return // there is no /proc: the stacks have no names
	}
	if names.of == nil {
		names.of = map[int]stackName{}
	}
	b := p.NewBuilder(Rate())
	for i := range stacks {
		sample := b.Sample(stacks[i].known())
		names.of[stacks[i].number] = stackName{sample.Label["library"][0], stackText(framesOf(sample))}
	}
}
