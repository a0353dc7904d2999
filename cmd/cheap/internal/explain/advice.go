package explain

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/page/figure"
)

// Advice says what would change a share of the processor time.
type Advice struct {
	Site     string  `json:"site"`     // the call site, or the call sites of one function
	Now      float64 `json:"now"`      // the share that it is about
	Expected float64 `json:"expected"` // what would be left of it, in parts of today's time
	Open     bool    `json:"open"`     // what would be left is not known, and Expected is Now
	Text     string  `json:"text"`
	Basis    string  `json:"basis"` // where the expectation comes from, "" if it is open
	Link     string  `json:"link"`  // a document of the project

	// Of advice about a loop that calls C:
	Loop   *Loop      `json:"loop,omitempty"`
	Calls  []LoopCall `json:"calls,omitempty"`  // in the order of the source
	Fewer  float64    `json:"fewer,omitempty"`  // calls of C, 0 if their price is not known
	Sketch string     `json:"sketch,omitempty"` // code in C, whose arguments are left out
}

// Figures are nanoseconds per operation, by table and row of the module lab: strings/arena-20.
type Figures struct {
	Ns   map[string]float64
	From string // the machine of the figures
}

// Stored are figures of docs/reference/report.json.
var Stored = Figures{
	From: "docs/reference/report.json, another machine",
	Ns: map[string]float64{
		"release/addcleanup": 685, "release/finalizer": 638, "release/own-forget": 115, "release/own-memory": 37.7,
	},
}

// Rows returns the names of the figures as the flag -run of the module lab takes them.
func (f Figures) Rows() string {
	var tables, rows []string
	for _, name := range slices.Sorted(maps.Keys(f.Ns)) {
		table, row, _ := strings.Cut(name, "/")
		tables, rows = append(tables, table), append(rows, row)
	}
	return "^(" + strings.Join(slices.Compact(tables), "|") + ")$/^(" + strings.Join(rows, "|") + ")$"
}

// ratio returns what a row takes of the time of another.
func (f Figures) ratio(row, of string) (ratio float64, basis string, ok bool) {
	a, b := f.Ns[row], f.Ns[of]
	if a <= 0 || b <= 0 {
		return 0, "", false
	}
	return a / b, fmt.Sprintf("%s of the time: %s %s, %s %s (%s)", figure.Times(a/b), row, figure.Duration(a), of, figure.Duration(b), f.From), true
}

const (
	leastAdvice = 0.02 // shares below are not worth a change
	mostAdvice  = 6    // beside what adviseMemory has to say
	batch       = 16   // calls that become one, in advice about fewer calls
)

// advise finds what would change the largest shares.
func (r *Report) advise(f Figures, l *loopFinder, b *callbacks, total float64) {
	r.adviseStrings(l.sources)
	r.adviseRecords(f)
	r.adviseEscapes(l.sources)
	r.adviseChecks()
	r.adviseLoops(l)
	r.adviseCallbacks(b, total)
	r.Advice = slices.DeleteFunc(r.Advice, func(a Advice) bool { return a.Now < leastAdvice || !a.Open && a.Now-a.Expected < leastAdvice/2 })
	slices.SortFunc(r.Advice, func(a, b Advice) int {
		return cmp.Or(cmp.Compare(b.Now-b.Expected, a.Now-a.Expected), cmp.Compare(a.Site, b.Site))
	})
	r.Advice = r.Advice[:min(len(r.Advice), mostAdvice)]
}

// adviseStrings is about functions that make strings and blocks for C and free them. What is freed
// elsewhere gets no advice: the profile does not say which blocks an allocator frees, and C.free of a
// block of cheap, or the other way round, is a crash. What a function frees before it makes something
// is from elsewhere. Where the source is here, it says so: blocks.go. What it frees behind that, or in a closure, as a deferred call is, may be what it
// has made: the reader knows. Neither does the profile say how large the blocks are. So what is
// expected is that the crossings go; what C does and what is copied stays.
func (r *Report) adviseStrings(src *sources) {
	type use struct {
		share, crossing   float64
		texts, free, grow bool
		made              int64 // the first line that makes one
		file              string
		sites             int
	}
	makes := func(s Site) bool {
		switch s.Callee {
		case "C.CString", "C.CBytes", "C.malloc", "C.calloc":
			return s.Function != ""
		}
		return false
	}
	uses := map[string]*use{}
	for _, s := range r.Sites {
		if !makes(s) {
			continue
		}
		u := uses[s.Function]
		if u == nil {
			u = &use{made: s.Line, file: s.File}
			uses[s.Function] = u
		}
		u.made = min(u.made, s.Line)
		u.texts = u.texts || s.Callee == "C.CString" || s.Callee == "C.CBytes"
	}
	for _, s := range r.Sites {
		free, grow := s.Callee == "C.free", s.Callee == "C.realloc"
		if !free && !grow && !makes(s) {
			continue
		}
		u := uses[s.Function]
		for f := s.Function; u == nil && isClosure.MatchString(s.Function) && strings.Contains(f, "."); u = uses[f] {
			f = f[:strings.LastIndexByte(f, '.')]
		}
		if u == nil {
			continue
		}
		u.grow = u.grow || grow
		u.free = u.free || free && (u != uses[s.Function] || s.Line > u.made)
		u.share += s.Share
		u.crossing += s.Mechanisms[mechanismIndex(mechCrossing)]
		u.sites++
	}
	for function, u := range uses {
		if !u.free || u.grow {
			continue
		}
		if made, found := src.madeIn(frame{function: function, file: u.file, line: u.made}); found {
			u.texts = u.texts || made.texts
			if !u.texts && (!made.blocks || made.others) {
				continue // what C frees, or what is from elsewhere, is no block of a Heap
			}
		}
		a := Advice{
			Site: fmt.Sprintf("%s, %s", shortName(function), figure.Plural(u.sites, "call")), Now: u.share, Expected: u.share - u.crossing,
			Basis: "the crossings; what C does, and what is copied, stays",
			Text:  "The function makes blocks, and frees blocks. If these are the same, a Heap (cheap.Malloc and cheap.Free) needs no call of C for them.", Link: "docs/porting.md#from-cmalloc",
		}
		if u.texts {
			a.Text = "The function makes texts for C, and frees texts. If these are the same, an arena for the arguments (cheap.GetArena, cheap.CString, Arena.Put) needs no call of C for them."
		}
		a.Text += " What C frees or has made has to stay."
		r.Advice = append(r.Advice, a)
	}
}

// adviseRecords is about cleanups and finalizers. The sites that register share what is released,
// in the proportion of their registering.
func (r *Report) adviseRecords(f Figures) {
	all, released := 0.0, Of(r.Purposes, Releasing).Share
	for _, s := range r.Sites {
		if isRegistering(s) {
			all += s.Share
		}
	}
	for _, s := range r.Sites {
		if !isRegistering(s) {
			continue
		}
		row, link := "release/addcleanup", "docs/porting.md#from-addcleanup"
		if s.Callee == "runtime.SetFinalizer" {
			row, link = "release/finalizer", "docs/porting.md#from-setfinalizer"
		}
		ratio, basis, ok := f.ratio("release/own-forget", row)
		if !ok {
			continue
		}
		now := s.Share + released*s.Share/all
		text := "With its part of releasing. A pool of package own shares registrations among its owners."
		if memory, _, ok := f.ratio("release/own-memory", row); ok {
			text += fmt.Sprintf(" Where the call only frees memory that the program has allocated, an own.Memory takes %s.", figure.Times(memory))
		}
		r.Advice = append(r.Advice, Advice{Site: s.place(), Now: now, Expected: now * ratio, Text: text, Basis: basis, Link: link})
	}
}

func isRegistering(s Site) bool {
	return s.Callee == "runtime.AddCleanup" || s.Callee == "runtime.SetFinalizer"
}

// adviseEscapes is about arguments that escape. A variable whose address is passed is allocated at the
// line that declares it, what an expression makes at the line of the call.
func (r *Report) adviseEscapes(src *sources) {
	type line struct {
		file string
		line int64
	}
	alloc := map[line]float64{}
	for _, s := range r.Sites {
		if s.Callee == "" {
			alloc[line{s.File, s.Line}] += s.Mechanisms[mechanismIndex(mechAlloc)]
		}
	}
	for _, s := range r.Sites {
		if !strings.HasPrefix(s.Callee, "C.") || s.Purpose == Strings {
			continue
		}
		lines := append(src.declared(frame{function: s.Function, file: s.File, line: s.Line}, strings.TrimPrefix(s.Callee, "C.")), s.Line)
		sum := 0.0
		for _, at := range lines {
			sum += alloc[line{s.File, at}]
			delete(alloc, line{s.File, at}) // of two calls on a line it is the first one's
		}
		if sum > 0 {
			r.Advice = append(r.Advice, Advice{
				Site: s.place(), Now: sum, Expected: 0, Link: "docs/guide.md#go-memory-directly",
				Text:  "Arguments of the call escape to the Go heap. If C neither keeps the pointer nor calls back, #cgo noescape and #cgo nocallback leave them on the stack.",
				Basis: "the allocations on the line of the call, and where its arguments are declared; their collection goes as well",
			})
		}
	}
}

// adviseChecks is about cgo's checks of arguments, which many calls share a little of each. cgo checks
// what may have Go pointers by its type: structs with pointers, and pointers to what has them or may
// have them. So it checks addresses in C memory as well, but no numbers.
func (r *Report) adviseChecks() {
	calls := map[string]float64{}
	for _, s := range r.Sites {
		if s.Checks > 0 {
			calls[cmp.Or(s.Callee, s.place())] += s.Checks
		}
	}
	names := slices.SortedFunc(maps.Keys(calls), func(a, b string) int {
		return cmp.Or(cmp.Compare(calls[b], calls[a]), cmp.Compare(a, b))
	})
	r.Advice = append(r.Advice, Advice{
		Site: "arguments of " + shortNames(names), Now: r.Checks, Link: "docs/guide.md#go-memory-directly",
		Text:  "cgo looks for Go pointers in these arguments: in structs with pointers, and in what unsafe.Pointer and pointers to such structs, and to opaque ones, point to. A function of C that takes fields as numbers, bytes as char *, and an address in C memory as uintptr_t, is called without checks.",
		Basis: "the checks alone",
	})
}

// place names a call site in one line.
func (s Site) place() string {
	text := shortName(s.Function)
	if s.File != "" {
		text += fmt.Sprintf(" %s:%d", filepath.Base(filepath.ToSlash(s.File)), s.Line)
	}
	if s.Callee != "" {
		text += " " + s.Callee
	}
	return text
}

// shortName is the name of a function without the folders of its package.
func shortName(function string) string {
	return filepath.Base(filepath.ToSlash(function))
}

// isClosure matches the name of a closure, which begins with that of the function that has it. Where
// the closure was in another one that was inlined, the name is longer: main.f.f.func1.func2.
var isClosure = regexp.MustCompile(`\.func\d+`)
