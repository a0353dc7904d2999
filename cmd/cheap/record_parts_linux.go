//go:build amd64 || arm64

package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/procfs"
	"github.com/cheapgo/cheap/internal/resident"
)

// A parts watches what the resident memory of the program is for. It looks from outside, so of Go it knows
// the size of the heap only.
type parts struct {
	pid     int
	program string
	isGo    bool
	live    func() (bytes, deviation int64, ok bool) // of the C heap
	inUse   func() []float64                         // of each stack; see File.InUse

	timeline *timeline // nil without a page. Only watch changes it
	grew     string    // a sentence about places that have grown, when the page was made, or ""

	mu      sync.Mutex // guards all that follows
	history resident.History
	peak    *resident.Reading // when the most was resident
	most    int64             // resident bytes of peak
}

const (
	partsEvery = 100 * time.Millisecond

	// partsShare is the share of the time in which the list of mappings is read: one in so many.
	partsShare = 20
)

// watch looks until over is closed. The resident bytes cost a microsecond. The list of mappings takes
// longer, so it is read when a tenth more is resident than ever before, or, for growth, when two seconds have
// passed.
func (p *parts) watch(over <-chan struct{}) {
	const atLeast = 2 * time.Second
	ticks := time.NewTicker(partsEvery)
	defer ticks.Stop()
	var last time.Time
	var took time.Duration
	statm := procfs.Open(fmt.Sprintf("/proc/%d/statm", p.pid))
	for {
		now := statm.Read(func(text []byte) int64 {
			all, _ := procfs.Resident(text, int64(os.Getpagesize()))
			return all
		})
		since := time.Since(last)
		if now > 0 && since >= partsShare*took && (now > p.most+p.most/10 || since > atLeast || p.timeline != nil && p.timeline.due()) {
			last = time.Now()
			p.look()
			took = time.Since(last)
		}
		select {
		case <-over:
			return
		case <-ticks.C:
		}
	}
}

// look reads the list of mappings.
func (p *parts) look() {
	m := resident.MappingsOf(p.pid, p.program, p.isGo)
	if m == nil {
		return // the program has ended
	}
	r := &resident.Reading{Time: time.Now(), Mappings: m}
	r.C.Live, r.C.Error, r.C.Known = p.live()
	if p.timeline != nil && p.timeline.due() {
		p.timeline.add(r, p.inUse())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history.Add(r.Point())
	if m.All.Resident > p.most {
		p.peak, p.most = r, m.All.Resident
	}
}

// mostParts is how many parts the report names.
const mostParts = 6

// reportVerdict writes the verdict, and what to do.
func (p *parts) reportVerdict(line func(label, format string, args ...any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.peak == nil {
		return
	}
	v := resident.Judge(p.peak, &p.history)
	if !v.Fault && p.grew != "" {
		v.Sentence, v.Do = p.grew, "see what these places keep: it is a leak, or a cache that is not full yet"
	}
	line("verdict", "%s", figure.Printable(v.Sentence))
	if v.Do != "" {
		profile := "the profile"
		if p.timeline != nil {
			profile = "the page"
		}
		line("to do", "%s", figure.Printable(strings.ReplaceAll(v.Do, "the profile of module cmem", profile)))
	}
}

// report writes what was resident at most, as the kernel says it, and what that was for when it was seen to be the
// most.
func (p *parts) report(line func(label, format string, args ...any), most int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.peak == nil {
		return
	}
	table := p.peak.Table()
	line("resident", "%s at most; when it was %s:", byteCount(max(most, table.Resident)), byteCount(table.Resident))
	for _, part := range table.Largest(mostParts) {
		line("", "%10s  %s", byteCount(part.Bytes), figure.Printable(part.Name))
	}
}
