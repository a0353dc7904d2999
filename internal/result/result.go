// Package result holds what `cheap bench` or `cheap replay` has measured: the rows
// of a report, and descriptions of their tables and of the machine.
//
// The JSON of a report of `cheap bench` is a list of rows, each complete in itself;
// see [Row]. Its fields are stable: later versions add fields, and change none.
package result

// A Report is what one run has measured.
type Report struct {
	Replay  bool // of `cheap replay`: tables are traces, and rows are allocators
	Machine Machine
	Tables  []Table // those that have rows, in the order of the report
	Rows    []Row   // of all tables, in the order of Tables
	Notes   []string
	Partial bool // the run was interrupted

	Warnings []string // what a reader must know before the figures
	Version  string   // of the program
	Command  string   // with its flags: "cheap bench -quick"
}

// A Table says what its rows have in common.
type Table struct {
	Name    string // as in Row.Table
	Title   string
	About   string // what is measured, in some sentences
	Unit    string // what an operation is: "call", "object", "collection"
	Chart   Chart
	Over    string   // for Sizes: what the number at the end of row names counts, "bytes" or "live owners"
	Sources []Source // of the figures in Published
}

// A Chart is how a table is drawn.
type Chart string

const (
	Bars  Chart = "bars"  // a bar for each row
	Peers Chart = "peers" // a bar for each row; in text, a line for each row of cheap, with the others in columns
	Procs Chart = "procs" // a line for each row name, over processors
	Held  Chart = "held"  // a bar for each row, as long as what the row holds
	Bytes Chart = "bytes" // a bar for each row, as long as the row's resident memory
	Sizes Chart = "sizes" // a line for each row name without its last word, over that: a number of bytes or objects
)

// A Source describes where published figures come from.
type Source struct {
	Name    string // short, as in Published.Source
	Author  string
	Title   string
	Date    string // as exact as is known: 2023, 2023-05, 2023-05-18
	Machine string // and the Go version, as far as the source says
	URL     string
}

// A Row is one line of a table, for one number of processors. Times are
// nanoseconds of wall-clock time for one operation, measured here. Only Published
// has figures of others.
type Row struct {
	Table string `json:"table"`
	Row   string `json:"row"`   // lower-case words joined by hyphens
	Procs int    `json:"procs"` // GOMAXPROCS

	// The median of the rounds, and the bounds of its 95 % confidence interval.
	// The bounds are 0 if there were too few rounds for an interval.
	NsPerOp  float64 `json:"ns_per_op"`
	CI95Low  float64 `json:"ci95_low"`
	CI95High float64 `json:"ci95_high"`

	CPUNsPerOp float64   `json:"cpu_ns_per_op"` // of the whole process; 0 if it is unknown
	Samples    []float64 `json:"samples_ns"`    // of the rounds, in their order

	AllocsPerOp  float64 `json:"allocs_per_op"`   // in the Go heap
	GoBytesPerOp float64 `json:"go_bytes_per_op"` // in the Go heap

	// Resident is the most memory of the process during a round, in bytes, less what
	// it had before: the median of the rounds, or that of the round before the first
	// where an allocator keeps its memory. It is 0 if it was not measured.
	Resident float64 `json:"resident_bytes,omitempty"`

	// Held is how many resources of C live for each that a live object owns, when what is
	// unreachable has been collected: the median of the rounds, 0 if it was not measured.
	Held float64 `json:"held,omitempty"`

	// P99 is the time of an operation that is longer than 99 of 100 others of its round,
	// in nanoseconds: the median of the rounds, 0 if it was not measured.
	P99 float64 `json:"p99_ns,omitempty"`

	// P999 is the same of 999 in 1,000.
	P999 float64 `json:"p999_ns,omitempty"`

	// Peak is the most bytes that the row's objects had live in C at once, and HeapBytes the
	// bytes of the Go heap for a live object beside its own: medians of the rounds, 0 if they
	// were not measured.
	Peak      float64 `json:"peak_bytes,omitempty"`
	HeapBytes float64 `json:"heap_bytes,omitempty"`

	// Collections is how many collections the Go heap's growth has started in a round.
	Collections float64 `json:"collections,omitempty"`

	Doubts []Doubt `json:"doubts,omitempty"` // why the time says little; nil if nothing is doubtful

	Versus *Ratio `json:"versus,omitempty"`

	CPUVersus []Ratio `json:"cpu_versus,omitempty"` // of processor times

	Bars []Bar `json:"bars,omitempty"` // what is promised of the row; nil without -limits

	Published []Published `json:"published"`
	Note      string      `json:"note"`

	// Section is the title of the part of the table that the row stands in, apart from
	// the others: "" is the first part.
	Section string `json:"section,omitempty"`

	// Profile says where the row's CPU time went, the largest share first. It is
	// nil without -cpuprofile.
	Profile []Share `json:"profile,omitempty"`

	Machine *Machine `json:"machine"` // the same in all rows of a run

	// Of a trace on an allocator, whose JSON has other fields: the operations of
	// a round, and the memory, nil where it was not measured.
	Ops       int     `json:"-"`
	Memory    *Memory `json:"-"`
	Preloaded bool    `json:"-"` // the allocator is a library that was C's malloc in a process of its own
}

// A Memory is what a trace kept resident on an allocator, in bytes above what the
// process had before the allocator was opened. It counts memory that belongs to
// no file: pages of code, which the first call of a function brings in, are not
// the allocator's.
type Memory struct {
	Peak  int64 // the most that a sample saw, that of Final included
	Final int64 // after every block was freed and the allocator trimmed
}

// A Ratio is a row's time divided by that of another row in the same rounds.
type Ratio struct {
	To       string  `json:"to"` // the other row, of the same table and processors
	Ratio    float64 `json:"ratio"`
	CI95Low  float64 `json:"ci95_low"`
	CI95High float64 `json:"ci95_high"`
	Noisy    bool    `json:"noisy"` // the rounds do not show which row is faster
}

// A Bar is what a figure of a row is promised to stay under.
type Bar struct {
	Figure string  `json:"figure"`       // "time", "processor time", "most live in C"
	To     string  `json:"to,omitempty"` // the row by whose figure it is divided, "" if it is not
	Value  float64 `json:"value"`        // the median over rounds
	Bar    float64 `json:"bar"`
	Limit  float64 `json:"limit"` // above it something has become worse than it was
}

// Regressed reports whether a figure is above the regression limit.
func (b Bar) Regressed() bool { return b.Value > b.Limit }

// Verdict says where a figure is.
func (b Bar) Verdict() string {
	switch {
	case b.Regressed():
		return "above the limit"
	case b.Value > b.Bar:
		return "missed"
	}
	return "met"
}

// A Published figure is a source's time for what the row does.
type Published struct {
	Ns     float64 `json:"ns"`
	Source string  `json:"source"` // Source.Name; which figure, if the source has several: "Lemire 2023, collector off"
}

// A Share is a part of a row's CPU time.
type Share struct {
	Function string  `json:"function"` // "runtime.addspecial", or "the sweep" for several
	Share    float64 `json:"share"`    // between 0 and 1
}

// A Machine describes what the figures depend on besides the code.
type Machine struct {
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	GOGC   string `json:"gogc"`
	Malloc string `json:"malloc"`
	// HugePages is the mode of transparent huge pages, "" where there are none.
	HugePages string `json:"huge_pages"`
	Date      string `json:"date"` // RFC 3339
}
