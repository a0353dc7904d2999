package inspect

import (
	"fmt"

	"github.com/cheapgo/cheap/internal/census"
	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/resident"
	"github.com/cheapgo/cheap/internal/sample"
)

// An Overview is the first screen of the page: what is resident, and what does not fit together.
type Overview struct {
	Resident float64  `json:"resident"`           // bytes; 0 if the system does not say
	Limit    float64  `json:"limit,omitempty"`    // bytes: the smaller one of the container's and pace's
	LimitOf  string   `json:"limit_of,omitempty"` // whose that is: "container" or "pace"
	Parts    []Part   `json:"parts"`              // the same parts each time, in one order; they add up to Resident
	Warnings []string `json:"warnings"`           // sentences, those first that matter most
}

// A Part is a part of the resident memory, of one or some rows of the table resident.
type Part struct {
	Name  string  `json:"name"`
	Bytes float64 `json:"bytes"`
}

// groups are the parts of an Overview.
var groups = []struct {
	name  string
	kinds []resident.Kind
}{
	{"Go", []resident.Kind{resident.GoInUse, resident.GoIdle, resident.GoStacks, resident.GoRuntime}},
	{"heaps of cheap", []resident.Kind{resident.CheapInUse, resident.CheapIdle, resident.CheapRecords}},
	{"C, in use", []resident.Kind{resident.CInUse}},
	{"malloc, free", []resident.Kind{resident.MallocFree}},
	{"C, in use or free", []resident.Kind{resident.MallocAll, resident.Unseparated}},
	{"stacks of threads", []resident.Kind{resident.ThreadStacks}},
	{"program and files", []resident.Kind{resident.Program, resident.Library, resident.File}},
	{"mapped or shared", []resident.Kind{resident.SharedMemory, resident.Sandbox, resident.Mapped}},
	{"the rest", []resident.Kind{resident.Rest}},
}

// overview returns the Overview of a snapshot.
func (s *snapshot) overview() *Overview {
	o := &Overview{Resident: float64(s.parts.Resident), Warnings: s.warnings()}
	for _, g := range groups {
		p := Part{Name: g.name}
		for _, k := range g.kinds {
			p.Bytes += float64(s.parts.Of(k))
		}
		o.Parts = append(o.Parts, p)
	}
	if n := s.reading.Cgroup.Limit; n > 0 {
		o.Limit, o.LimitOf = float64(n), "container"
	}
	if n := float64(s.pace.Limit); n > 0 && (o.Limit == 0 || n < o.Limit) {
		o.Limit, o.LimitOf = n, "pace"
	}
	return o
}

// much is the least number of bytes of which it is said that they do not fit.
const much = 16 << 20

// warnings says what of the figures does not fit together, and which of them are not read.
func (s *snapshot) warnings() []string {
	list := []string{}
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	text := func(n int64) string { return figure.Bytes(float64(n)) }
	group := &s.reading.Cgroup
	if limit := s.pace.Limit; limit > 0 && max(s.pace.Used, s.pace.Held) > limit {
		add("The limit of pace is exceeded: %s of %s count against it.", text(max(s.pace.Used, s.pace.Held)), text(limit))
	}
	if group.Limit > 0 && group.Charged-group.Cache > group.Limit/20*19 {
		add("The limit of the container is near: it is charged %s of %s, and can drop %s of them.", text(group.Charged), text(group.Limit), text(group.Cache))
	}
	var declared, live, unsized int64
	for i := range s.pools {
		p := &s.pools[i]
		declared, live = declared+p.Bytes, live+p.Live
		if p.Bytes == p.Live*census.DefaultSize {
			unsized += p.Live
		}
	}
	if live > 0 && s.verdict.About != resident.AboutSizes {
		s.warnOfSizes(declared, add)
	}
	if unsized >= 1000 && unsized > live/2 {
		add("%s of %s owners have no size, and count as %s each. Then pacing cannot know when to collect: set Options.Size of their pools.",
			figure.Thousands(int(unsized)), figure.Thousands(int(live)), text(census.DefaultSize))
	}
	if s.reading.Go.Percent < 0 && s.pace.Limit == 0 && live > 0 {
		add("GOGC is off, and pace has no limit: nothing starts a collection, so the collector releases nothing.")
	}
	switch has, why := cmemState(); {
	case why != "":
		list = append(list, why)
	case !has && s.parts.Of(resident.MallocAll)+s.parts.Of(resident.Unseparated)+s.parts.Of(resident.CInUse) > max(much, s.parts.Resident/4):
		add("Nobody counts what C libraries allocate. Import module cmem to see which, and from which lines.")
	}
	if s.allocated >= much && sample.Rate() == 0 {
		add("Stacks of the blocks of heaps are not recorded: inspect.SetRate(inspect.DefaultRate) does it from then on.")
	}
	return list
}

// warnOfSizes adds a warning if what pools declare and what C has differ by more than a half.
func (s *snapshot) warnOfSizes(declared int64, add func(format string, args ...any)) {
	text := func(n int64) string { return figure.Bytes(float64(n)) }
	held := s.parts.Of(resident.CInUse) + s.parts.Of(resident.MallocAll) + s.parts.Of(resident.Unseparated)
	most := s.parts.Resident + s.parts.Swap // what is no Go's, and may be of pools
	for _, k := range []resident.Kind{resident.GoInUse, resident.GoIdle, resident.GoStacks, resident.GoRuntime, resident.Program, resident.Library} {
		most -= s.parts.Of(k)
	}
	switch {
	case s.parts.Resident == 0:
	case declared > 2*most && declared-most > much:
		add("Pools declare %s, and at most %s are resident that are not Go's: sizes are too large, or pages were never touched.", text(declared), text(most))
	case held > 2*declared && held-declared > much && declared > 0:
		add("Pools declare %s, and C has %s: sizes are too small, or others have allocated the difference.", text(declared), text(held))
	}
}
