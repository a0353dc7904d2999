package inspect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/resident"
	"github.com/cheapgo/cheap/pace"
)

const mib = 1 << 20

// TestOverviewParts compares the sum of the parts.
func TestOverviewParts(t *testing.T) {
	var r pagejson.Figures
	testcall.Must(t, json.Unmarshal(ask(Handler(Options{}), "GET", "all.json", nil).Body.Bytes(), &r))
	sum := 0.0
	for _, p := range r.Overview.Parts {
		sum += p.Bytes
	}
	if sum != r.Overview.Resident || len(r.Overview.Parts) != 9 { // for each of which cheap top has a letter
		t.Errorf("%d parts have %v bytes, and %v are resident", len(r.Overview.Parts), sum, r.Overview.Resident)
	}
}

// TestOverviewLimit takes the smaller limit.
func TestOverviewLimit(t *testing.T) {
	for _, row := range []struct {
		container, pace int64
		want            float64
		of              string
	}{
		{0, 0, 0, ""}, {300, 0, 300, "container"}, {0, 200, 200, "pace"}, {300, 200, 200, "pace"}, {300, 400, 300, "container"},
	} {
		s := &snapshot{reading: &resident.Reading{Cgroup: resident.Cgroup{Limit: row.container}}, pace: pace.Stats{Limit: row.pace}}
		if o := s.overview(); o.Limit != row.want || o.LimitOf != row.of {
			t.Errorf("%d and %d: %v of %q", row.container, row.pace, o.Limit, o.LimitOf)
		}
	}
}

// TestWarnings looks at figures that do not fit together, and at some that do.
func TestWarnings(t *testing.T) {
	pools := func(live, bytes int64) []poolFigures {
		return []poolFigures{{Pool: census.Pool{Live: live, Bytes: bytes}}}
	}
	c := func(kind resident.Kind, n int64) resident.Table {
		return resident.Table{Resident: n + 20*mib, Parts: []resident.Part{{Kind: kind, Bytes: n}, {Kind: resident.GoInUse, Bytes: 20 * mib}}}
	}
	for _, row := range []struct {
		name string
		s    snapshot
		want []string // how the warnings begin
	}{
		{name: "nothing", s: snapshot{}},
		{name: "sizes fit", s: snapshot{pools: pools(10, 78*mib), parts: c(resident.CInUse, 100*mib)}},
		{name: "sizes are too small, as the verdict may say", s: snapshot{pools: pools(10, 78*mib), parts: c(resident.CInUse, 250*mib)}},
		{
			name: "sizes are too large", s: snapshot{pools: pools(10, 250*mib), parts: c(resident.CInUse, 78*mib)},
			want: []string{"Pools declare 250 MiB, and at most 78.0 MiB are resident"},
		},
		{
			name: "no sizes", s: snapshot{pools: pools(5000, 5000*census.DefaultSize), parts: c(resident.CInUse, 20*mib)},
			want: []string{"5,000 of 5,000 owners have no size"},
		},
		{name: "few without a size", s: snapshot{pools: pools(10, 10*census.DefaultSize), parts: c(resident.CInUse, 10*mib)}},
		{
			name: "pace is above its limit", s: snapshot{pace: pace.Stats{Limit: 256 * mib, Used: 334 * mib}},
			want: []string{"The limit of pace is exceeded: 334 MiB of 256 MiB"},
		},
		{
			name: "the limit of the container cannot be read", s: snapshot{pace: pace.Stats{Unread: os.ErrNotExist}},
			want: []string{"Package pace cannot read the limit of the container: file does not exist. Set Options.Limit."},
		},
		{name: "pace is below its limit", s: snapshot{pace: pace.Stats{Limit: 256 * mib, Used: 250 * mib}}},
		{
			name: "the container is full", s: snapshot{reading: &resident.Reading{Cgroup: resident.Cgroup{Limit: 300 * mib, Charged: 299 * mib, Cache: mib}}},
			want: []string{"The limit of the container is near"},
		},
		{name: "full of files", s: snapshot{reading: &resident.Reading{Cgroup: resident.Cgroup{Limit: 300 * mib, Charged: 299 * mib, Cache: 200 * mib}}}},
		{
			name: "GOGC is off", s: snapshot{pools: pools(1, mib), reading: &resident.Reading{Go: resident.Go{Percent: -1}}},
			want: []string{"GOGC is off"},
		},
		{name: "GOGC is off, with a limit", s: snapshot{pools: pools(1, mib), reading: &resident.Reading{Go: resident.Go{Percent: -1}}, pace: pace.Stats{Limit: mib}}},
		{
			name: "nobody counts C", s: snapshot{parts: c(resident.MallocAll, 100*mib)},
			want: []string{"Nobody counts what C libraries allocate"},
		},
		{
			name: "the verdict says who counts C",
			s:    snapshot{parts: c(resident.MallocAll, 100*mib), verdict: resident.Verdict{Do: "import module cmem, which tells it"}},
		},
		{
			name: "an allocator", s: snapshot{reading: &resident.Reading{Mappings: &resident.Mappings{Allocators: []string{"jemalloc is in lib.so, as malloc"}}}},
			want: []string{"Jemalloc is in lib.so, as malloc."},
		},
		{
			name: "no stacks of blocks", s: snapshot{allocated: 20 * mib},
			want: []string{"Stacks of the blocks of heaps are not recorded"},
		},
	} {
		if row.s.reading == nil {
			row.s.reading = &resident.Reading{}
		}
		for _, p := range row.s.pools {
			row.s.reading.Pools = append(row.s.reading.Pools, resident.Holder{Bytes: p.Bytes, Count: p.Live})
		}
		row.s.reading.C.Known = row.s.parts.Of(resident.CInUse) > 0
		got := append(row.s.faults(), row.s.hints()...)
		if !slices.ContainsFunc(row.want, func(s string) bool { return strings.HasPrefix(s, "Nobody") }) {
			got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "Nobody") }) // the tests do not import cmem
		}
		if len(got) != len(row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], row.want[i]) {
				t.Errorf("%s: %q, want %q", row.name, got[i], row.want[i])
			}
		}
	}
}

// TestSentence looks at what stands first.
func TestSentence(t *testing.T) {
	nothing := Verdict{Sentence: "nothing stands out; of 9 MiB the most is C's", Do: "import module cmem"}
	fault := Verdict{Sentence: "C: 9 MiB in use and growing", Do: "look", Fault: true}
	for _, row := range []struct {
		verdict       Verdict
		faults, hints []string
		want          pagejson.Overview
	}{
		{want: pagejson.Overview{Sentence: "It is not known what holds the memory."}},
		{nothing, nil, []string{"H."}, pagejson.Overview{Sentence: "Nothing stands out; of 9 MiB the most is C's.", Next: "To do: import module cmem.", Warnings: []string{"H."}}},
		{nothing, []string{"F.", "G."}, []string{"H."}, pagejson.Overview{Sentence: "Of 9 MiB the most is C's.", Next: "To do: import module cmem.", Fault: true, Warnings: []string{"F.", "G.", "H."}}},
		{fault, []string{"F."}, []string{"H."}, pagejson.Overview{Sentence: "C: 9 MiB in use and growing.", Next: "To do: look.", Fault: true, Warnings: []string{"F.", "H."}}},
	} {
		var o pagejson.Overview
		addSentences(&o, row.verdict, row.faults, row.hints)
		if o.Sentence != row.want.Sentence || o.Next != row.want.Next || o.Fault != row.want.Fault || !slices.Equal(o.Warnings, row.want.Warnings) {
			t.Errorf("%+v, want %+v", o, row.want)
		}
	}
}

// TestLegend adds up the parts below a hundredth.
func TestLegend(t *testing.T) {
	o := pagejson.Overview{Resident: 1000 * mib, Parts: []pagejson.Part{{Name: "Go", Bytes: 100 * mib}, {Name: "none", Bytes: 0}, {Name: "a", Bytes: 9 * mib}, {Name: "C", Bytes: 888 * mib}, {Name: "b", Bytes: 3 * mib}}}
	addLegend(&o)
	if want := []pagejson.Legend{{Part: 0, Name: "Go", Text: "100 MiB"}, {Part: 3, Name: "C", Text: "888 MiB"}, {Part: -1, Name: "smaller parts", Text: "12.0 MiB"}}; !slices.Equal(o.Legend, want) {
		t.Errorf("%v, want %v", o.Legend, want)
	}
}

// TestWays looks for the words that the page makes links of where they are written, and for where the links
// go.
func TestWays(t *testing.T) {
	_, list, ok := strings.Cut(pageJS, "const ways = [")
	list, _, _ = strings.Cut(list, "];")
	ways := regexp.MustCompile(`\['([^']+)', '(#?)([^']+)'\]`).FindAllStringSubmatch(list, -1)
	if !ok || len(ways) < 5 {
		t.Fatalf("page.js has %d ways", len(ways))
	}
	files, err := filepath.Glob("../internal/watch/resident/*.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	written := ""
	for _, name := range append(files, "overview.go") {
		text, err := os.ReadFile(name)
		testcall.Must(t, err)
		written += string(text)
	}
	places := map[string]bool{"cmem": true} // if module cmem is in the program
	for _, l := range links {
		places[l.Name] = true
	}
	for _, q := range questions {
		for _, name := range q.tables {
			places["#"+name] = true
		}
	}
	for _, w := range ways {
		if !strings.Contains(written, w[1]) {
			t.Errorf("nothing says %q", w[1])
		}
		if !places[w[2]+w[3]] {
			t.Errorf("%q goes to %s%s, which is not there", w[1], w[2], w[3])
		}
	}
}
