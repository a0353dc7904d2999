// Package result holds what the module lab has measured: the rows
// of a report, and descriptions of their tables and of the machine.
//
// The JSON of a report is a list of rows, each complete in itself;
// see [Row]. Its fields are stable: later versions add fields, and change none.
package result

// A Report is what one run has measured.
type Report struct {
	Machine Machine
	Tables  []Table // those that have rows, in the order of the report
	Rows    []Row   // of all tables, in the order of Tables
	Notes   []string
	Partial bool // the run was interrupted

	Warnings []string // what a reader must know before the figures
	Command  string   // with its flags: "lab -quick"
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
	Table string `json:"table"` // the table that the row is in
	Row   string `json:"row"`   // its name, unique in its table: lower-case words joined by hyphens
	Procs int    `json:"procs"` // GOMAXPROCS

	NsPerOp  float64 `json:"ns_per_op"` // the median of the rounds: nanoseconds of wall-clock time for one operation
	CI95Low  float64 `json:"ci95_low"`  // the lower bound of its 95 % confidence interval, 0 if there were too few rounds
	CI95High float64 `json:"ci95_high"` // the upper bound, likewise

	CPUNsPerOp float64   `json:"cpu_ns_per_op"` // processor time of the process for one operation, 0 if it is unknown
	Samples    []float64 `json:"samples_ns"`    // nanoseconds for one operation in each round, in order

	AllocsPerOp  float64 `json:"allocs_per_op"`   // allocations in the Go heap for one operation
	GoBytesPerOp float64 `json:"go_bytes_per_op"` // their bytes

	// Resident is the most memory of the process during a round, in bytes, less what it had
	// before: the median of the rounds, or that of the round before the first where an
	// allocator keeps its memory.
	Resident float64 `json:"resident_bytes,omitempty"`

	// Kept is how many bytes of a trace's memory stay resident after all blocks were freed and the
	// allocator was trimmed.
	Kept float64 `json:"kept_bytes,omitempty"`

	// Held is how many resources of C live for each that a live object owns, when what is
	// unreachable has been collected: the median of the rounds.
	Held float64 `json:"held,omitempty"`

	P99  float64 `json:"p99_ns,omitempty"`  // nanoseconds that one operation in a hundred exceeds, the median of the rounds
	P999 float64 `json:"p999_ns,omitempty"` // the same of one in a thousand

	Peak        float64 `json:"peak_bytes,omitempty"`  // the most bytes that the row's objects had live in C at once, the median of the rounds
	HeapBytes   float64 `json:"heap_bytes,omitempty"`  // bytes of the Go heap for a live object beside its own, the median of the rounds
	Collections float64 `json:"collections,omitempty"` // how many collections the growth of the Go heap has started in a round, the median

	// Doubts says why the time says little: "waited" if other programs had the processor for
	// a large part of it, "unsteady" if the rounds differ.
	Doubts []Doubt `json:"doubts,omitempty"`

	Versus    *Ratio  `json:"versus,omitempty"`     // the comparison with another row
	CPUVersus []Ratio `json:"cpu_versus,omitempty"` // the same for processor times, in the table workloads: one for each allocator of C

	Bars []Bar `json:"bars,omitempty"` // with -limits: what is promised of the row

	Published []Published `json:"published"` // published figures, may be empty
	Note      string      `json:"note"`      // a remark on the row, may be empty

	// Section is the title of the part of the table in which the row stands apart; the first
	// part has none.
	Section string `json:"section,omitempty"`

	Machine *Machine `json:"machine"` // what the figures depend on besides the code; the same in all rows of a run
}

// A Ratio is a row's time divided by that of another row in the same rounds.
type Ratio struct {
	To       string  `json:"to"`        // the other row, of the same table and number of processors
	Ratio    float64 `json:"ratio"`     // this row's time divided by that of the other row, the median over rounds
	CI95Low  float64 `json:"ci95_low"`  // the lower bound of its 95 % confidence interval, 0 if there were too few rounds
	CI95High float64 `json:"ci95_high"` // the upper bound, likewise
	Noisy    bool    `json:"noisy"`     // the rounds do not show which row is faster
}

// A Bar is what a figure of a row is promised to stay under.
type Bar struct {
	Figure string  `json:"figure"`       // what is compared: "time", "processor time", "most live in C", and others
	To     string  `json:"to,omitempty"` // the row by whose figure it is divided, in the same rounds
	Value  float64 `json:"value"`        // the median over rounds
	Bar    float64 `json:"bar"`          // what it is to stay under
	Limit  float64 `json:"limit"`        // the regression limit: above it something has become worse than it was
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
	Ns     float64 `json:"ns"`     // nanoseconds for one operation
	Source string  `json:"source"` // the source's short name; behind a comma which figure it is, if the source has several: "Lemire 2023, collector off"
}

// A Machine describes what the figures depend on besides the code.
type Machine struct {
	Go        string `json:"go"`         // the version of Go
	OS        string `json:"os"`         // GOOS
	Arch      string `json:"arch"`       // GOARCH
	CPU       string `json:"cpu"`        // the processor's name
	Cores     int    `json:"cores"`      // how many the program may use
	GOGC      string `json:"gogc"`       // GOGC; rows that end in -gc-off run without a collector all the same
	Malloc    string `json:"malloc"`     // the malloc that C is linked with, as far as is known
	HugePages string `json:"huge_pages"` // the mode of transparent huge pages, empty if there are none
	Date      string `json:"date"`       // when the run began, in RFC 3339
}
