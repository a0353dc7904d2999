//go:build cgo && (amd64 || arm64)

package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/page/heappage"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// TestRecordPage records a program, and reads what the page has of it: at the end what was leaked, and moments in order.
func TestRecordPage(t *testing.T) {
	t.Parallel()
	command, out := recordCommandLine(t, nil)
	page := strings.TrimSuffix(out, ".pb.gz") + ".html"
	command.Args = []string{"cheap", "record", "-rate=1", "-o=" + page, "--", theRecorded(t), "leak"}
	text, err := command.CombinedOutput()
	if code := command.ProcessState.ExitCode(); code != 3 {
		t.Fatalf("code %d, %v: %s", code, err, text)
	}
	if !strings.Contains(string(text), "  page        "+page+"\n") {
		t.Errorf("the report does not name the page: %s", text)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("there is a profile as well")
	}
	html, err := os.ReadFile(page)
	testcall.Must(t, err)
	found := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindSubmatch(html)
	if found == nil {
		t.Fatal("the page has no data")
	}
	var data struct {
		Names  []string
		Times  []float64
		Stacks []struct{ F, V, A []int }
	}
	testcall.Must(t, json.Unmarshal(found[1], &data))
	if n := len(data.Times); n < 2 || data.Times[0] != 0 || data.Times[n-1] <= 0 {
		t.Errorf("the moments are %v", data.Times)
	}
	leaked := 0
	for _, s := range data.Stacks {
		if len(s.A) != len(data.Times) || s.A[0] != 0 || s.A[len(s.A)-1] != s.V[1] || s.V[0] < s.V[1] {
			t.Fatalf("a stack has %v at %d moments, of %v", s.A, len(data.Times), s.V)
		}
		for _, f := range s.F {
			if data.Names[f] == "main.leaky" {
				leaked += s.V[1]
			}
		}
	}
	if leaked != 1_000_000 {
		t.Errorf("main.leaky has %d bytes in use, want 1,000,000", leaked)
	}
	if !strings.Contains(string(html), "main.leaky") || !strings.Contains(string(html), "<code>") {
		t.Error("no place is named")
	}
}

// TestMostResident has a child that had less resident than this process, and one that had more.
func TestMostResident(t *testing.T) {
	if n := mostResident(1 << 20); n != 0 {
		t.Errorf("%d bytes, which may be this process's", n)
	}
	if n := mostResident(1 << 50); n != 1<<50 {
		t.Errorf("%d bytes, want 1 PiB", n)
	}
}

// TestTimelineOf has a stack more at each moment, in front of the others.
func TestTimelineOf(t *testing.T) {
	line := &timeline{moments: []timelineMoment{{inUse: nil}, {inUse: []float64{10}}, {inUse: []float64{5, 12}}, {inUse: []float64{-1, 7, 13}}}}
	for i, want := range [][]int64{{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 5, 7}, {0, 10, 12, 13}} {
		if got := line.of(i, 4, func(m *timelineMoment) []float64 { return m.inUse }); !slices.Equal(got, want) {
			t.Errorf("stack %d of 4: %d, want %d", i, got, want)
		}
	}
}

// TestTimelineEnd has a program whose exit takes half of the time that the command has waited for it: nothing has stopped growing
// meanwhile.
func TestTimelineEnd(t *testing.T) {
	const sec = time.Second
	line := &timeline{moments: []timelineMoment{{at: sec}, {at: 2 * sec}}}
	for _, test := range []struct{ seen, want time.Duration }{
		{0, 6 * sec}, {3 * sec, 3 * sec},
		{6*sec - momentsApart/2, 6 * sec}, // also of a program that ends before the second look
	} {
		line.seen = test.seen
		if got, want := line.all(6*sec), []heappage.Moment{{}, {At: sec}, {At: 2 * sec}, {At: test.want}}; !slices.Equal(got, want) {
			t.Errorf("of a program that was seen until %v: %v, want %v", test.seen, got, want)
		}
	}
}

// TestTimeline keeps at most mostMoments moments of any time, from the first one on, evenly.
func TestTimeline(t *testing.T) {
	began := time.Now()
	line := &timeline{began: began}
	r := new(resident.Reading)
	for at := time.Duration(0); at < time.Hour; at += partsEvery {
		if n := len(line.moments); n > 0 && at-line.moments[n-1].at < max(line.apart, momentsApart) {
			continue
		}
		r.Time = began.Add(at)
		line.addPoint(r)
		line.addMoment(timelineMoment{at: at, inUse: []float64{float64(at)}, resident: int64(at) + 1})
	}
	n := len(line.moments)
	if n > mostMoments || n < mostMoments/2 || len(line.points) != n || line.moments[0].at != 0 {
		t.Fatalf("%d moments and %d points, from %v on", n, len(line.points), line.moments[0].at)
	}
	for i, m := range line.moments {
		if m.inUse[0] != float64(m.at) || line.points[i].At != m.at {
			t.Fatalf("moment %d is of %v, with what was in use at %v", i, m.at, time.Duration(m.inUse[0]))
		}
		if i > 1 {
			if gap, first := m.at-line.moments[i-1].at, line.moments[1].at; gap > 2*first || gap < first/2 {
				t.Errorf("moment %d is %v behind the one before, the first two are %v apart", i, gap, first)
			}
		}
	}
	line.points = line.points[:n/2] // looks took too long from then on
	all := line.toEnd()
	if end := all[len(all)-1]; len(all) != n || end.At != line.moments[n-1].at || end.Bytes[len(pageSeries)-1] != int64(end.At)+1 {
		t.Errorf("%d points, to %+v", len(all), end)
	}
	if last := line.moments[n-1].at; last < 58*time.Minute {
		t.Errorf("the last moment is at %v of an hour", last)
	}
}
