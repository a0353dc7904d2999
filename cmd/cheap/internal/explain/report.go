package explain

import "time"

// A Report says where the processor time of a program went. All shares are parts of that time,
// so that those of one dimension add up to 1.
type Report struct {
	Source   string        `json:"source"`
	Go       string        `json:"go,omitempty"` // of the program, if it is known: go1.26.8
	Names    string        `json:"names"`        // the versions of Go that have all names of the profile
	Duration time.Duration `json:"duration_ns"`  // of the profile
	CPU      time.Duration `json:"cpu_ns"`       // that the samples stand for
	Samples  int64         `json:"samples"`
	Exact    bool          `json:"exact"` // the profile tells callbacks from C

	Mechanisms []Share `json:"mechanisms"`
	Purposes   []Share `json:"purposes"`
	Both       []Cell  `json:"both"` // the shares of each mechanism and purpose together
	Rest       []Share `json:"rest"` // the parts of the mechanism rest

	// Roots is the part of collections for the records of cleanups and finalizers, which are
	// roots outside of the Go heap.
	Roots float64 `json:"roots"`

	// Checks is the part of crossings in which cgo looks for Go pointers in what arguments point to.
	Checks float64 `json:"checks"`

	Sites  []Site   `json:"sites"` // the largest first
	Advice []Advice `json:"advice"`

	Calibration Calibration `json:"calibration"`
	Calls       *Calls      `json:"calls,omitempty"` // if the process was run
	Notes       []string    `json:"notes,omitempty"`

	flame *node
}

// A Share is a part of the processor time. Where calls of C cannot be told from C itself, Low
// and High enclose it; otherwise they are equal to it.
type Share struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// A Cell is the share of a mechanism that serves a purpose.
type Cell struct {
	Mechanism string  `json:"mechanism"`
	Purpose   string  `json:"purpose"`
	Share     float64 `json:"share"`
}

// A Site is a line of Go, and what it calls. Its shares are parts of the time of the whole
// program, in the order of Report.Mechanisms.
type Site struct {
	Function   string    `json:"function"` // "" for what no line has called: collections, the scheduler
	File       string    `json:"file,omitempty"`
	Line       int64     `json:"line,omitempty"`
	Callee     string    `json:"callee,omitempty"` // C.name, runtime.AddCleanup, runtime.SetFinalizer
	Purpose    string    `json:"purpose"`          // that most of its time has
	Share      float64   `json:"share"`
	Mechanisms []float64 `json:"mechanisms"`
	Checks     float64   `json:"checks,omitempty"` // cgo's checks of the arguments
	C          Share     `json:"c"`                // the range of C itself
}

// The names of the mechanisms and of the purposes in a Report. They do not change.
const (
	C          = "C itself"
	Crossing   = "crossing"
	Callback   = "callback"
	Allocation = "Go allocation"
	Locks      = "locks"
	Collection = "collection"
	Rest       = "rest"

	Strings     = "strings and blocks"
	Registering = "registering"
	Releasing   = "releasing"
)

// mechanismNames are in the order of the report, with what each sums up.
var mechanismNames = []struct {
	name string
	of   []mechanism
}{
	{C, []mechanism{mechC}},
	{Crossing, []mechanism{mechCrossing}},
	{Callback, []mechanism{mechCallback}},
	{Allocation, []mechanism{mechAlloc}},
	{Locks, []mechanism{mechLock}},
	{Collection, []mechanism{mechCollection}},
	{Rest, []mechanism{mechGo, mechRecord, mechScheduler, mechSyscall, mechStack, mechProfiler, mechUnclassified}},
}

// restNames are the parts of the rest.
var restNames = []struct {
	name string
	of   mechanism
}{
	{"Go code", mechGo},
	{"records of cleanups and finalizers", mechRecord},
	{"scheduler", mechScheduler},
	{"system calls", mechSyscall},
	{"growing stacks", mechStack},
	{"the profiler", mechProfiler},
	{"unclassified", mechUnclassified},
}

var purposeNames = []struct {
	name string
	of   purpose
}{
	{Strings, purposeStrings},
	{Registering, purposeRegister},
	{Releasing, purposeRelease},
	{Rest, purposeRest},
}

// mechanismIndex returns the place of a mechanism in the report.
func mechanismIndex(m mechanism) int {
	for i, n := range mechanismNames {
		for _, of := range n.of {
			if of == m {
				return i
			}
		}
	}
	panic("explain: no mechanism " + string(m))
}

// A Calibration says how much of a call of C the profile shows as C itself, in parts of what it
// shows in the runtime's entersyscall and exitsyscall.
type Calibration struct {
	Go   string `json:"go"`   // the version for which it holds
	From string `json:"from"` // "this machine", or where the stored figures come from

	PerCall     Ratio `json:"per_call"`     // of a call, to its entersyscall and exitsyscall
	PerCallback Ratio `json:"per_callback"` // of a callback, to what the profile shows as callback

	CallNs     float64 `json:"call_ns,omitempty"`     // the price of a call that does nothing, without C
	CallbackNs float64 `json:"callback_ns,omitempty"` // and of a callback
}

// A Ratio is a figure of the calibration, with its range.
type Ratio struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Calls is the second estimate of the crossings: the number of calls that the runtime has
// counted, times the price of one.
type Calls struct {
	Count    uint64  `json:"count"`
	Share    float64 `json:"share"`    // of the crossings, by this estimate
	Disagree bool    `json:"disagree"` // with the profile
}

// compare adds the second estimate.
func (r *Report) compare(calls uint64) {
	if calls == 0 || r.CPU == 0 || r.Calibration.CallNs <= 0 {
		return
	}
	c := &Calls{Count: calls, Share: float64(calls) * r.Calibration.CallNs / float64(r.CPU)}
	crossing := Of(r.Mechanisms, Crossing).Share - r.Checks // the price has no checks of arguments
	low, high := min(c.Share, crossing), max(c.Share, crossing)
	// Both are estimates: less than a third, or less than three points, is no disagreement.
	c.Disagree = high-low > 0.03 && low < high*2/3
	r.Calls = c
}
