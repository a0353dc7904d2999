// Package result is what `cheap bench` has measured: the rows of its report, and
// what is to be known about each table and about the machine.
//
// A report is written as JSON, a list of rows, each complete in itself; see
// [Row]. The fields are stable: later versions add some and change none.
package result

// A Report is what one run has measured.
type Report struct {
	Machine Machine
	Tables  []Table // those that have rows, in the order of the report
	Rows    []Row   // of all tables, in the order of Tables
	Notes   []string
	Partial bool // the run was interrupted
}

// A Table says what its rows have in common.
type Table struct {
	Name    string // as in Row.Table
	Title   string
	About   string // what is measured, in a sentence or two
	Unit    string // what an operation is: "call", "object", "collection"
	Chart   Chart
	Over    string   // what the number at the end of row names counts, for Sizes: "bytes", "live owners"
	Sources []Source // whose figures are in Published
}

// A Chart is how a table is drawn.
type Chart string

const (
	Bars  Chart = "bars"  // one for each row
	Procs Chart = "procs" // a line for each row name, over processors
	Sizes Chart = "sizes" // a line for each row name but its last word, which is a number of bytes or of objects
)

// A Source is where published figures come from.
type Source struct {
	Name    string // short, as in Published.Source
	Author  string
	Title   string
	Date    string // as exact as it is known: 2023, 2023-05, 2023-05-18
	Machine string // and Go version, as far as the source tells
	URL     string
}

// A Row is one line of a table, for one number of processors. Times are
// nanoseconds for one operation on the clock, measured here; Published alone has
// figures of others.
type Row struct {
	Table string `json:"table"`
	Row   string `json:"row"`   // lower-case words joined by hyphens
	Procs int    `json:"procs"` // GOMAXPROCS

	// The median of the rounds, and the bounds between which that of all
	// possible rounds lies in 95 of 100 runs. The bounds are 0 where there were
	// too few rounds to tell.
	NsPerOp  float64 `json:"ns_per_op"`
	CI95Low  float64 `json:"ci95_low"`
	CI95High float64 `json:"ci95_high"`

	CPUNsPerOp float64   `json:"cpu_ns_per_op"` // of the whole process; 0 where it is not known
	Samples    []float64 `json:"samples_ns"`    // of the rounds, in their order

	AllocsPerOp  float64 `json:"allocs_per_op"`   // of the Go heap
	GoBytesPerOp float64 `json:"go_bytes_per_op"` // likewise

	Versus *Ratio `json:"versus,omitempty"`

	Published []Published `json:"published"`
	Note      string      `json:"note"`

	// Profile is where a row's CPU time went, where a profile was asked for, the
	// largest share first.
	Profile []Share `json:"profile,omitempty"`

	Machine *Machine `json:"machine"` // the same in all rows of a run
}

// A Ratio is a row's time divided by that of another one in the same rounds.
type Ratio struct {
	To       string  `json:"to"` // the other row, of the same table and processors
	Ratio    float64 `json:"ratio"`
	CI95Low  float64 `json:"ci95_low"`
	CI95High float64 `json:"ci95_high"`
	Noisy    bool    `json:"noisy"` // the rounds do not tell the two apart
}

// A Published figure is what a source says that a row took elsewhere.
type Published struct {
	Ns     float64 `json:"ns"`
	Source string  `json:"source"` // Source.Name, and what of it, if it has several: "Lemire 2023, collector off"
}

// A Share is a part of a row's CPU time.
type Share struct {
	Function string  `json:"function"` // "runtime.addspecial", or "the sweep" for several
	Share    float64 `json:"share"`    // between 0 and 1
}

// A Machine is what the figures depend on besides the code.
type Machine struct {
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	GOGC   string `json:"gogc"`
	Malloc string `json:"malloc"`
	Date   string `json:"date"` // RFC 3339
}
