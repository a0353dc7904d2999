// Package pagejson has the types of the JSON of the page that package inspect makes. A later version may
// add fields, and removes or changes none, so a program that reads them ignores fields that it does not
// know. Fields with omitempty are missing where there is nothing to say. Times are in RFC 3339.
//
//	all.json, arenas.json, and a file for each table   [Figures]
//	verdict.json                                       [Verdict]
//	history.json                                       a list of [Point]
//	suspects.json                                      [SuspectFigures]
//	growth.json                                        [GrowthFigures]
package pagejson

import "time"

// Figures are the JSON of the page: all.json, and that of each table.
type Figures struct {
	Time     time.Time `json:"time"`               // when it was read
	Program  string    `json:"program"`            // Options.Title, or the name of the program
	Verdict  Verdict   `json:"verdict"`            // empty in arenas.json
	Overview *Overview `json:"overview,omitempty"` // in all.json only
	Tables   []Table   `json:"tables"`             // all, or the one that was asked for
}

// A Verdict is inspect.Verdict.
type Verdict struct {
	About    string `json:"about"`    // what it is about, such as "malloc_free"; "nothing" if nothing stands out
	Fault    bool   `json:"fault"`    // something is wrong, as far as can be told
	Sentence string `json:"sentence"` // such as "C holds 1.2 GiB: 60 MiB in use, 1.1 GiB free inside malloc"
	Do       string `json:"do"`       // what to do, or where to look
	Bytes    int64  `json:"bytes"`    // of what it is about
}

// An Overview is the first screen of the page: what is resident, and what does not fit together.
type Overview struct {
	Sentence string   `json:"sentence"`           // the verdict
	Next     string   `json:"next"`               // a sentence: what to do
	Fault    bool     `json:"fault"`              // something is wrong, as far as can be told
	Resident float64  `json:"resident"`           // bytes; 0 if the system does not say
	Limit    float64  `json:"limit,omitempty"`    // bytes: the smaller one of the container's and pace's
	LimitOf  string   `json:"limit_of,omitempty"` // whose that is: "container" or "pace"
	Pace     string   `json:"pace,omitempty"`     // the line of pace.Stats.Decision
	Parts    []Part   `json:"parts"`              // the same parts each time, in one order; they add up to resident
	Legend   []Legend `json:"legend"`             // of the parts that are a hundredth of resident, and of the others together
	Warnings []string `json:"warnings"`           // sentences: what does not fit, that first which matters most, and what nobody counts
}

// A Part is a part of the resident memory, of one or some rows of the table resident.
type Part struct {
	Name  string  `json:"name"`  // what it is
	Bytes float64 `json:"bytes"` // that are resident
}

// A Legend says what a colour or a letter of the bar stands for.
type Legend struct {
	Part int    `json:"part"` // its index in parts; -1 for the smaller parts together
	Name string `json:"name"` // of the part
	Text string `json:"text"` // its bytes, as people write them
}

// A Point is the parts of an Overview at a time.
type Point struct {
	Time   time.Time `json:"time"`   // when they were read
	Values []float64 `json:"values"` // bytes, in the order of parts
}

// A Table is metrics with the same labels, and their values.
type Table struct {
	Name    string     `json:"name"`           // in addresses: "heaps"
	Title   string     `json:"title"`          // for people
	About   string     `json:"about"`          // what the table has
	Labels  []string   `json:"labels"`         // names of the labels
	Metrics []Heading  `json:"metrics"`        // what its columns are
	Rows    []TableRow `json:"rows"`           // empty where there is nothing to show
	Note    string     `json:"note,omitempty"` // why there are no rows
}

// A Heading is a metric of a Table.
type Heading struct {
	Name string `json:"name"` // "" if it is no metric of inspect.Metrics
	Head string `json:"head"` // a short name, for the column
	Unit string `json:"unit"` // "bytes", "seconds", or what is counted
	Kind string `json:"kind"` // "gauge" or "counter"
	Help string `json:"help"` // what it is, in a sentence
}

// A TableRow is a line of a Table.
type TableRow struct {
	Labels []string  `json:"labels"` // values of the table's labels
	Values []float64 `json:"values"` // of the table's metrics
	Text   []string  `json:"text"`   // the values as people write them
}

// SuspectFigures are the JSON of the leak suspects.
type SuspectFigures struct {
	Time     time.Time `json:"time"`             // when they were read
	Program  string    `json:"program"`          // as in all.json
	Advice   string    `json:"advice,omitempty"` // what to set if there are pools that record no stacks
	Suspects []Suspect `json:"suspects"`         // those with the most bytes first, at the end those of which nothing is open

	// Largest has three at most, of the suspects and of what grows in the C heap, those first that matter
	// most.
	Largest []LargestSuspect `json:"largest"`
	None    string           `json:"none,omitempty"` // a sentence, if largest has none
}

// A Suspect is a stack that has made owners, in a pool, with a label. If a part of the owners
// is recorded, its numbers are estimates. The sums of Live and Bytes over all suspects of a
// pool are exact.
type Suspect struct {
	Pool  string `json:"pool"`            // its name
	Label string `json:"label,omitempty"` // what SetLabel has set

	// Stack is the stack that made the owners, from the caller of package own on, in the
	// format of a goroutine's trace. It is empty for owners that were made before
	// the level was set, and for those of a size that has no sample.
	Stack string `json:"stack"`

	Live    int64         `json:"live"`              // open owners
	Bytes   int64         `json:"bytes"`             // sizes of their resources
	Samples int64         `json:"samples,omitempty"` // how many of them were recorded
	Age     time.Duration `json:"age_ns,omitempty"`  // of the oldest recorded one, in nanoseconds; whole seconds

	Made      int64 `json:"made,omitempty"`      // how many owners the stack has made since the first one was recorded, whatever their labels are
	Collected int64 `json:"collected,omitempty"` // how many of them the collector had to release
	Closed    int64 `json:"closed,omitempty"`    // how many of them were closed or disowned

	// The collector had to release owners of this stack, while at least half of the pool's owners
	// that ended were closed.
	MissingClose bool `json:"missing_close,omitempty"`

	// Uses are the stacks of the last calls of Use of an open owner, the newest first. They
	// are recorded at the levels advanced and all.
	Uses []string `json:"uses,omitempty"`

	PCs []uintptr `json:"-"` // of Stack
}

// A LargestSuspect is a line of which the first screen of the page says that it holds memory: a Suspect, or a
// Growth.
type LargestSuspect struct {
	Line  string `json:"line"`  // the innermost function of Go of the stack, with its file and line
	Text  string `json:"text"`  // what there is of it
	Stack string `json:"stack"` // in the format of a goroutine's trace, "" if it was not recorded
	Table string `json:"table"` // where more is said: "suspects", or "growth"
	Bytes int64  `json:"bytes"` // that are open, or by which it has grown
}

// GrowthFigures are the JSON of the stacks of the C heap that keep growing.
type GrowthFigures struct {
	Time     time.Time `json:"time"`           // when the last interval ended
	Program  string    `json:"program"`        // as in all.json
	Seconds  float64   `json:"seconds"`        // of all intervals together
	Note     string    `json:"note,omitempty"` // why there is nothing, or what is waited for
	Suspects []Growth  `json:"suspects"`       // the stacks
}

// A Growth is a stack of the C heap whose bytes in use have grown in each of the last intervals, or, where the verdict is
// that C grows, in the last ones.
type Growth struct {
	Library string `json:"library"` // as in the table libraries
	Live    int64  `json:"live"`    // bytes in use, an estimate
	Grown   int64  `json:"grown"`   // by how much in these intervals, an estimate
	Error   int64  `json:"error"`   // the standard deviation of grown, at most
	Stack   string `json:"stack"`   // functions of C, and then of Go, in the format of a goroutine's trace
}
