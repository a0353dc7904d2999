package inspect

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/page/charts"
	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/heappage"
	"github.com/cheapgo/cheap/internal/watch/census"
)

// mostMoments is how many requests for c.html are remembered. When there are more, every second one is
// forgotten, but the first and the last.
const mostMoments = 32

// moments has what each stack of the C heap had in use when c.html was asked for. Only requests add to it, as
// to a history.
type moments struct {
	mu   sync.Mutex
	list []moment // under mu
}

type moment struct {
	time  time.Time
	inUse map[string]int64 // bytes, by the key of a stack
}

// add adds a moment, and returns all.
func (m *moments) add(now moment) []moment {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.list) == mostMoments {
		n := 0
		for i := 0; i < len(m.list); i += 2 {
			m.list[n] = m.list[i]
			n++
		}
		clear(m.list[n:])
		m.list = m.list[:n]
	}
	m.list = append(m.list, now)
	return slices.Clone(m.list)
}

// serveCPage serves the C heap over time and by stack, as one page.
func (h *handler) serveCPage(w http.ResponseWriter, r *http.Request) {
	if !cmemRuns() {
		http.Error(w, "module cmem is not in the program, or does nothing", http.StatusNotFound)
		return
	}
	page, err := h.cPage(r.Context().Done())
	var b bytes.Buffer
	if err == nil {
		err = page.Write(&b)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", charts.Policy)
	_, _ = w.Write(b.Bytes()) // an error is that of a reader who has gone
}

// cPage makes the page of now, which is one more moment.
func (h *handler) cPage(done <-chan struct{}) (*heappage.Recording, error) {
	var b bytes.Buffer
	if err := census.C().WriteProfile(&b, 0, done); err != nil {
		return nil, err
	}
	p, err := profile.Parse(&b)
	if err != nil {
		return nil, err
	}
	figures, _ := newReport(h.o, "all")
	h.history.add(&figures)
	stacks, keys := cStacks(p)
	now := moment{figures.Time, map[string]int64{}}
	for i, key := range keys {
		now.inUse[key] = stacks[i].InUse
	}
	list := h.moments.add(now)
	points := h.history.all()
	began := list[0].time
	if len(points) > 0 && points[0].Time.Before(began) {
		began = points[0].Time
	}
	page := &heappage.Recording{
		Program: programOf(h.o), Verdict: figures.Overview.Sentence, Do: figures.Overview.Next, Stacks: stacks, Runs: true,
		Rate: fmt.Sprintf("The bytes of stacks are estimates from samples, one in %s in the mean.", figure.Bytes(float64(p.Period))),
	}
	c := census.C().Read()
	page.Facts = []string{
		fmt.Sprintf("C code called malloc and its like %s times, and free %s times.", figure.Thousands(int(c.Mallocs)), figure.Thousands(int(c.Frees))),
		fmt.Sprintf("Each request for this page is a moment; %s known. Reload it later, and compare two.", are(len(list))),
	}
	for _, m := range list {
		page.Moments = append(page.Moments, heappage.Moment{At: m.time.Sub(began)})
		for i, key := range keys {
			page.Stacks[i].At = append(page.Stacks[i].At, m.inUse[key])
		}
	}
	for i, part := range figures.Overview.Parts {
		page.Series = append(page.Series, heappage.Series{Name: part.Name, Color: i})
	}
	for _, q := range points {
		at := heappage.Point{At: q.Time.Sub(began)}
		for _, n := range q.Values {
			at.Bytes = append(at.Bytes, int64(n))
		}
		page.Points = append(page.Points, at)
	}
	return page, nil
}

func are(n int) string {
	if n == 1 {
		return "one is"
	}
	return fmt.Sprint(n, " are")
}

// cStacks returns the stacks of a profile of the C heap, and a key of each. Stacks that have the same functions, library
// and labels are one.
func cStacks(p *profile.Profile) (stacks []heappage.Stack, keys []string) {
	value, index := map[string]int{}, map[string]int{}
	for i, t := range p.SampleType {
		value[t.Type] = i
	}
	for _, s := range p.Sample {
		stack := heappage.Stack{Thread: "threads of Go", Allocated: s.Value[value["alloc_space"]], InUse: s.Value[value["inuse_space"]]}
		for _, l := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(l.Line) {
				name := line.Function.Name
				if thread, ok := strings.CutPrefix(name, "[thread "); ok {
					stack.Thread = strings.TrimSuffix(thread, "]")
				}
				stack.Frames = append(stack.Frames, name)
			}
		}
		library, labels := heappage.Labels(s.Label)
		stack.Library, stack.Labels = library, strings.Join(labels, " ")
		key := strings.Join(append(slices.Clone(stack.Frames), cmp.Or(stack.Library, "-"), stack.Labels), "\x00")
		if i, ok := index[key]; ok { // another line of the same functions
			stacks[i].Allocated += stack.Allocated
			stacks[i].InUse += stack.InUse
			continue
		}
		index[key] = len(stacks)
		stacks, keys = append(stacks, stack), append(keys, key)
	}
	return stacks, keys
}
