package inspect

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/resident"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// overview returns the Overview of a snapshot.
func (s *snapshot) overview() *pagejson.Overview {
	o := &pagejson.Overview{Resident: float64(s.parts.Resident), Legend: []pagejson.Legend{}, Pace: s.pace.Decision()}
	for _, p := range s.parts.Groups() {
		o.Parts = append(o.Parts, pagejson.Part{Name: p.Name, Bytes: float64(p.Bytes)})
	}
	if n := s.reading.Cgroup.Limit; n > 0 {
		o.Limit, o.LimitOf = float64(n), "container"
	}
	if n := float64(s.pace.Limit); n > 0 && (o.Limit == 0 || n < o.Limit) {
		o.Limit, o.LimitOf = n, "pace"
	}
	addLegend(o)
	addSentences(o, verdictOf(s.verdict), s.faults(), s.hints())
	return o
}

func addLegend(o *pagejson.Overview) {
	smaller := 0.0
	for i, p := range o.Parts {
		if p.Bytes < o.Resident/100 || p.Bytes == 0 {
			smaller += p.Bytes
			continue
		}
		o.Legend = append(o.Legend, pagejson.Legend{Part: i, Name: p.Name, Text: figure.Bytes(p.Bytes)})
	}
	if smaller > 0 {
		o.Legend = append(o.Legend, pagejson.Legend{Part: -1, Name: "smaller parts", Text: figure.Bytes(smaller)})
	}
}

// addSentences puts the verdict first, as all that show it do, and below it what does not fit. "Nothing stands out" is not
// said above that.
func addSentences(o *pagejson.Overview, v Verdict, faults, hints []string) {
	o.Fault = v.Fault || len(faults) > 0
	if v.Do != "" {
		o.Next = "To do: " + v.Do + "."
	}
	sentence := cmp.Or(v.Sentence, "it is not known what holds the memory") + "."
	if len(faults) > 0 {
		sentence = strings.TrimPrefix(sentence, "nothing stands out; ")
	}
	o.Sentence = capital(sentence)
	o.Warnings = append(append([]string{}, faults...), hints...)
}

// capital makes the first letter of a sentence a capital one.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// much is the least number of bytes of which it is said that nobody counts them.
const much = 16 << 20

// faults says what of the figures does not fit together, that first which matters most.
func (s *snapshot) faults() (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	text := func(n int64) string { return figure.Bytes(float64(n)) }
	group := &s.reading.Cgroup
	if limit := s.pace.Limit; limit > 0 && max(s.pace.Used, s.pace.Held) > limit {
		add("The limit of pace is exceeded: %s of %s count against it.", text(max(s.pace.Used, s.pace.Held)), text(limit))
	}
	if err := s.pace.Unread; err != nil {
		add("Package pace cannot read the limit of the container: %v. Set Options.Limit.", err)
	}
	if group.Limit > 0 && group.Charged-group.Cache > group.Limit/20*19 {
		slow := ""
		if group.High == group.Limit {
			slow = "; above it the kernel slows the program down"
		}
		add("The limit of the container is near: it is charged %s of %s, and can drop %s of them"+slow+".", text(group.Charged), text(group.Limit), text(group.Cache))
	}
	var live, unsized int64
	for i := range s.pools {
		p := &s.pools[i]
		live += p.Live
		if p.Bytes == p.Live*census.DefaultSize {
			unsized += p.Live
		}
	}
	if d := s.reading.Declared(&s.parts); live > 0 && s.parts.Resident > 0 && d.TooLarge() { // the verdict says that they are too small
		add("Pools declare %s, and at most %s are resident that are not Go's: sizes are too large, or pages were never touched.", text(d.Pools), text(d.Most))
	}
	if unsized >= 1000 && unsized > live/2 {
		add("%s of %s owners have no size, and count as %s each. Then pacing cannot know when to collect: set Options.Size of their pools.",
			figure.Thousands(int(unsized)), figure.Thousands(int(live)), text(census.DefaultSize))
	}
	if s.reading.Go.Percent < 0 && s.pace.Limit == 0 && live > 0 {
		add("GOGC is off, and pace has no limit: nothing starts a collection, so the collector releases nothing.")
	}
	return list
}

// hints says which figures are not read, and which allocators are in the program.
func (s *snapshot) hints() (list []string) {
	switch has, why := cmemState(); {
	case why != "":
		list = append(list, why)
	case strings.Contains(s.verdict.Do, "import module cmem"):
	case !has && s.parts.Of(resident.MallocAll)+s.parts.Of(resident.Unseparated)+s.parts.Of(resident.CInUse) > max(much, s.parts.Resident/4):
		list = append(list, "Nobody counts what C libraries allocate. Import module cmem to see which, and from which lines.")
	}
	if err := s.reading.Cgroup.Unread; err != nil && s.pace.Unread == nil {
		list = append(list, fmt.Sprintf("The limit of the container, if there is one, cannot be read: %v.", err))
	}
	if m := s.reading.Mappings; m != nil {
		for _, line := range m.Allocators {
			list = append(list, capital(line)+".")
		}
	}
	if s.allocated >= much && sample.Rate() == 0 {
		list = append(list, "Stacks of the blocks of heaps are not recorded: inspect.SetRate(inspect.DefaultRate) does it from then on.")
	}
	return list
}
