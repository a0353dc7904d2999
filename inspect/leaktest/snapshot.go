package leaktest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/watch/leaks"
	"github.com/cheapgo/cheap/pace"
)

// A snapshot is what there is at a moment.
type snapshot struct {
	owners   map[siteKey]tally // of those that were made since a generation
	older    map[siteKey]int64 // open ones; whether they were made since is not known
	heaps    map[*cheap.Heap]cheap.Stats
	accounts map[string]int64 // bytes of those that belong to no heap and no pool
}

// A siteKey is a stack in the pools of a name.
type siteKey struct{ pool, stack string }

type tally struct{ open, bytes, collected int64 }

// takeSnapshot takes a snapshot. Owners that were made before a generation are left out.
func takeSnapshot(generation uint64) snapshot {
	s := snapshot{map[siteKey]tally{}, map[siteKey]int64{}, map[*cheap.Heap]cheap.Stats{}, map[string]int64{}}
	for _, x := range leaks.Read() {
		k := siteKey{x.Pool, stackText(x.PCs)}
		if x.Generation < generation {
			if x.Generation == 0 {
				s.older[k] += x.Live
			}
			continue
		}
		v := s.owners[k]
		v.open += x.Live
		v.bytes += x.Bytes
		if !x.Memory {
			v.collected += x.Collected
		}
		s.owners[k] = v
	}
	others := map[string]bool{"own": true, "own, C heap": true} // the accounts of the pools
	for _, h := range cheap.Heaps() {
		others[h.Name()] = true
		st := h.Stats()
		if h == cheap.Default() {
			st.Blocks -= leaks.ArenaBlocks.Load()
		}
		s.heaps[h] = st
	}
	for _, a := range pace.Accounts() {
		if !others[a.Name] {
			s.accounts[a.Name] += a.Held
		}
	}
	return s
}

// since describes what is there and was not before.
func (s snapshot) since(before snapshot, o *options) (all []string) {
	for k, v := range s.owners {
		if matches(o.pools, k.pool) {
			continue
		}
		if v.open > 0 {
			all = append(all, fmt.Sprintf("%s: %s open at the end, of %s%s", k.pool, owners(v.open, "is", "are"), bytes(v.bytes), madeBy(k.stack)))
		}
		if v.collected > 0 && !matches(o.collected, k.pool) {
			all = append(all, fmt.Sprintf("%s: %s released by the collector, a Close is missing%s", k.pool, owners(v.collected, "was", "were"), madeBy(k.stack)))
		}
	}
	for k, n := range s.older {
		if n -= before.older[k]; n > 0 && !matches(o.pools, k.pool) {
			all = append(all, fmt.Sprintf("%s: %s open at the end%s", k.pool, owners(n, "is", "are"), madeBy(k.stack)))
		}
	}
	for h, st := range s.heaps {
		b := before.heaps[h]
		if n := st.Blocks - b.Blocks; n > 0 && !matches(o.heaps, h.Name()) {
			all = append(all, fmt.Sprintf("heap %s: %s more than before, of %s", h.Name(), plural(n, "live block"), bytes(max(st.Bytes-b.Bytes, 0))))
		}
	}
	for name, n := range s.accounts {
		if n -= before.accounts[name]; n > 0 && !matches(o.accounts, name) {
			all = append(all, fmt.Sprintf("account %s: %s more than before", name, bytes(n)))
		}
	}
	slices.Sort(all)
	return all
}

func owners(n int64, one, many string) string {
	if n == 1 {
		return "1 owner " + one
	}
	return fmt.Sprintf("%d owners %s", n, many)
}

func bytes(n int64) string { return plural(n, "byte") }

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// madeBy is the end of a line, and the stack.
func madeBy(stack string) string {
	if stack == "" {
		return "; who made them was not recorded"
	}
	return "; made by\n" + strings.TrimSuffix(stack, "\n")
}

// stackText returns a stack in the format of a goroutine's trace, up to the function that
// package testing has called.
func stackText(pcs []uintptr) string {
	var text strings.Builder
	for frames := runtime.CallersFrames(pcs); len(pcs) > 0; {
		f, more := frames.Next()
		if f.Function == "testing.tRunner" || f.Function == "runtime.goexit" {
			break
		}
		fmt.Fprintf(&text, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		if !more {
			break
		}
	}
	return text.String()
}
