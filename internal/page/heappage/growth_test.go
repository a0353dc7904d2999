package heappage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// momentsOf returns the moments of a run of 12.8 s.
func momentsOf() (list []Moment) {
	for i := range 65 {
		list = append(list, Moment{At: time.Duration(i) * 200 * time.Millisecond})
	}
	return list
}

// TestGrew has places of which the bytes at each moment are known.
func TestGrew(t *testing.T) {
	const mib = 1 << 20
	moments := momentsOf()
	for _, row := range []struct {
		name string
		of   func(second float64) float64 // MiB
		grew bool
		from float64 // seconds
	}{
		{"from the start on", func(s float64) float64 { return s }, true, 0},
		{"from the half on", func(s float64) float64 { return max(s-6.4, 0.01) }, true, 6.4},
		{"in the last third", func(s float64) float64 { return max(s-9, 0.01) }, true, 9},
		{"behind a table", func(s float64) float64 { return 20*min(s*5, 1) + max(s-5, 0) }, true, 5},
		{"in steps", func(s float64) float64 { return math.Floor(s) }, true, 0},
		{"a table", func(s float64) float64 { return 20 * min(s*5, 1) }, false, 0},
		{"a cache that fills", func(s float64) float64 { return min(s*2, 8) }, false, 0},
		{"and is dropped", func(s float64) float64 { return max(0, 10-s) }, false, 0},
		{"a wave", func(s float64) float64 { return 5 + math.Sin(s) }, false, 0},
		{"that has ended", func(s float64) float64 { return min(s, 9) }, false, 0},
		{"what is emptied again and again", func(s float64) float64 { return 8 * math.Mod(s, 1.75) }, false, 0},
		{"and ends full", func(s float64) float64 { return 8 * math.Mod(s, 1.9) }, false, 0},
		{"one that filled late", func(s float64) float64 { return 10 * min(max(s-6, 0), 1) }, false, 0},
		{"blocks of any size that are replaced", func(s float64) float64 { return 70 + 25*math.Sin(97*s)*math.Sin(31*s) }, false, 0},
		{"nothing", func(float64) float64 { return 0 }, false, 0},
	} {
		at := make([]int64, len(moments))
		for i, m := range moments {
			at[i] = int64(row.of(m.At.Seconds()) * mib)
		}
		since, more, ok := Grew(at, moments, 1)
		if ok != row.grew || math.Abs(since.Seconds()-row.from) > 0.9 || ok != (more > 0) {
			t.Errorf("%s: %v since %v, %d bytes more, want %v since %v s", row.name, ok, since, more, row.grew, row.from)
		}
	}
	late := append([]Moment{moments[0]}, moments[40:]...) // as on a busy machine: what there was before is not known
	if _, _, ok := Grew(make([]int64, len(late)), late, 1); ok {
		t.Error("nothing has grown")
	}
	noise := []int64{0, 70, 75, 72, 68, 74, 71, 77, 73, 69, 72, 70, 74, 76, 72, 78, 81, 79, 84, 80, 83, 82, 85, 84, 86, 88}
	for i := range noise {
		noise[i] *= mib
	}
	if _, _, ok := Grew(noise, late[:len(noise)], 1); ok {
		t.Error("a level has grown of which only the last third is known")
	}
	for n := range 8 {
		if _, _, ok := Grew(make([]int64, n), moments[:n], 1); ok {
			t.Errorf("%d moments are enough", n)
		}
	}
}

// TestRank has nine places, six of which grow. Five of these and the largest two of the others are kept, and the page shows each with
// its line.
func TestRank(t *testing.T) {
	const mib = 1 << 20
	r := &Recording{Program: "p", Moments: momentsOf(), Stacks: []Stack{{InUse: 300 * mib}}}
	place := func(name string, of func(i int) int) Place {
		p := Place{Name: name, Blocks: 2}
		for i := range r.Moments {
			p.At = append(p.At, int64(of(i))*mib)
		}
		p.Bytes = p.At[len(p.At)-1]
		return p
	}
	var all []Place
	for n := range 6 {
		all = append(all, place(fmt.Sprint("grows", n+1), func(i int) int { return (n + 1) * i / 4 }))
	}
	for n := range 3 {
		all = append(all, place(fmt.Sprint("level", n+1), func(int) int { return 50 + n }))
	}
	all = append(all, place("small", func(i int) int { return i / 32 })) // less than a hundredth of all
	all[3] = place("grows4", func(i int) int { return max(0, i-40) })
	all[5].Caller, all[5].Labels = "main.calls", "route=/a"
	if got, by := r.Rank(all, 1); got != "C memory grew until the end at grows6, called by main.calls, with the label route=/a, by 96.0 MiB from the start on, and less at 5 other places" || by != 96*mib {
		t.Errorf("%q, %d", got, by)
	}
	got := ""
	for _, p := range r.Places {
		got += p.Name + ": " + p.Grew + "; "
	}
	if want := "grows6: by 96.0 MiB from the start on; grows5: by 80.0 MiB from the start on; grows3: by 48.0 MiB from the start on; grows2: by 32.0 MiB from the start on; grows4: by 24.0 MiB from about 8.0 s on; level3: ; level2: ; "; got != want {
		t.Errorf("the places are %s, want %s", got, want)
	}
	page := written(t, r)
	if lines, grew := strings.Count(page, "<polyline"), strings.Count(page, "<svg viewBox=\"0 0 100 20\" preserveAspectRatio=\"none\" aria-hidden=\"true\" class=\"grew\">"); lines != 7 || grew != 5 || !strings.Contains(page, "<b>grew by 24.0 MiB from about 8.0 s on, until the end</b>, about 2 blocks") || !strings.Contains(page, ", what has grown first</h2>") {
		t.Errorf("the page has %d lines, %d of which grew", lines, grew)
	}
	for _, row := range []struct {
		all  []Place
		want string
	}{
		{nil, ""},
		{[]Place{place("level", func(int) int { return 50 }), {Name: "of no moments", Bytes: mib}}, ""},
		{[]Place{place("f f.go:1", func(i int) int { return i })}, "C memory grew until the end at f f.go:1, by 64.0 MiB from the start on"},
	} {
		if got, _ := r.Rank(row.all, 1); got != row.want || len(r.Places) != len(row.all) {
			t.Errorf("%q of %d places, want %q", got, len(r.Places), row.want)
		}
		written(t, r)
	}
	one := []Place{place("f f.go:1", func(i int) int { return i / 2 }), place("f f.go:1", func(i int) int { return max(0, i-20) }), place("f f.go:1", func(i int) int { return max(0, 90-4*i) })}
	one[0].By, one[1].By = "open", "read"
	if got, by := r.Rank(one, 1); got != "C memory grew until the end at f f.go:1, by 69.0 MiB from about 3.0 s on" || by != 69*mib || len(r.Places) != 2 || r.Places[0].By != "read" {
		t.Errorf("of one line: %q, %d bytes in %+v", got, by, r.Places)
	}
	lines := []Place{place("f f.go:1", func(i int) int { return 2 * i }), place("g g.go:1", func(i int) int { return i }), place("f f.go:9", func(int) int { return 9 })}
	r.Rank(lines, 1)
	if page := written(t, r); r.Places[1].Name != "f f.go:9" || !strings.Contains(page, `data-find="f" title="its flame graph"><code>… f.go:9</code>`) {
		t.Errorf("the lines of a function are not together: %+v", r.Places)
	}
	for renewed, want := range map[int64]string{
		20:  "C memory grew until the end at f f.go:1, by 128 MiB from the start on, and less at 1 other place",
		64:  "C memory grew until the end at f f.go:1, by 128 MiB from the start on",
		128: "",
	} {
		r.Renewed = renewed*mib + 1
		if got, _ := r.Rank([]Place{place("f f.go:1", func(i int) int { return 2 * i }), place("g g.go:1", func(i int) int { return i })}, 1); got != want {
			t.Errorf("where %d MiB from before were freed: %q, want %q", renewed, got, want)
		}
	}
	r.Renewed = 0
	for blocks, off := range map[int64]string{1 << 20: " ± 5.66 MiB", 128: " ± 4.32 MiB", 64: " ± 3.16 MiB", 32: " ± 1.55 MiB", 2: ""} {
		sampled := []Place{place("f f.go:1", func(i int) int { return i })}
		sampled[0].Blocks = blocks
		if got, _ := r.Rank(sampled, 512<<10); got != "C memory grew until the end at f f.go:1, by 64.0 MiB"+off+" from the start on" {
			t.Errorf("of %d blocks: %q", blocks, got)
		}
	}
}

// TestGrewSampled has caches that are full from the start on, and leaks, of which one byte in 512 KiB is sampled. Blocks are
// replaced, so what is seen to be in use goes up and down. No cache is accused, and of the leaks nearly all are found.
func TestGrewSampled(t *testing.T) {
	const every, blocks, runs = 512 << 10, 1300, 200
	moments := momentsOf()
	r := rand.New(rand.NewPCG(1, 2))
	accused, found := 0, 0
	sampled := func() int64 { // a block of 16 KiB
		if r.IntN(every) < 16<<10 {
			return every
		}
		return 0
	}
	for range runs {
		var cache [blocks]int64
		var full, leak []int64
		leaked := int64(0)
		for i := range cache {
			cache[i] = sampled()
		}
		for range moments {
			n := int64(0)
			for i := range cache {
				if r.IntN(8) == 0 {
					cache[i] = sampled()
				}
				n += cache[i]
			}
			for range 20 {
				leaked += sampled()
			}
			full, leak = append(full, n), append(leak, leaked)
		}
		if _, _, ok := Grew(full, moments, every); ok {
			accused++
		}
		if _, _, ok := Grew(leak, moments, every); ok {
			found++
		}
	}
	if accused > runs/100 || found < runs*9/10 {
		t.Errorf("of %d each, %d caches are accused, and %d leaks are found", runs, accused, found)
	}
	t.Logf("of %d each, %d caches are accused, and %d leaks are found", runs, accused, found)
}

// TestGrewNoise has 40 blocks of up to 4 MiB, each replaced again and again by one of another size. All of them together go up and
// down by chance, and end high. A machine that is busy sees 24 moments of that, far from each other or close: the place is not
// accused.
func TestGrewNoise(t *testing.T) {
	const every, ticks, runs = 512 << 10, 500, 500
	chance := rand.New(rand.NewPCG(3, 4))
	accused := 0
	for range runs {
		r := rand.New(rand.NewPCG(1, 2))
		var blocks [40]float64
		var sum float64
		var all [ticks]int64
		for i := range all {
			at, n := r.IntN(len(blocks)), float64(r.IntN(4<<20))
			if p := -math.Expm1(-n / every); chance.Float64() < p {
				n /= p
			} else {
				n = 0
			}
			sum += n - blocks[at]
			blocks[at], all[i] = n, int64(sum)
		}
		seen := []int{0, ticks - 1}
		for range 24 {
			seen = append(seen, chance.IntN(ticks))
		}
		slices.Sort(seen)
		var moments []Moment
		var at []int64
		for _, i := range seen {
			moments, at = append(moments, Moment{At: time.Duration(i) * 10 * time.Millisecond}), append(at, all[i])
		}
		if _, _, ok := Grew(at, moments, every); ok {
			accused++
		}
	}
	if accused > runs/50 {
		t.Errorf("accused in %d of %d recordings", accused, runs)
	}
	t.Logf("accused in %d of %d recordings", accused, runs)
}
