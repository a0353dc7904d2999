package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// A Verdict says in a sentence what holds the memory of the process, and what to do. docs/tools.md has
// the rules. Growth is told from earlier readings: those that were asked for, and those that [Handler] makes by itself.
type Verdict struct {
	About    string // what it is about, such as "malloc_free"; "nothing" if nothing stands out
	Fault    bool   // something is wrong, as far as can be told
	Sentence string // such as "C holds 1.2 GiB: 60 MiB in use, 1.1 GiB free inside malloc"
	Do       string // what to do, or where to look
	Bytes    int64  // of what it is about
}

// String returns the sentence, and what to do.
func (v Verdict) String() string {
	return resident.Verdict{Sentence: v.Sentence, Do: v.Do}.String()
}

// ReadVerdict reads what the memory of the process is for, and judges it. It does not stop the world, and keeps
// some hundred bytes, by which the next calls tell growth. It reads the list of mappings, which takes the kernel
// some milliseconds, in which nothing else can be mapped.
func ReadVerdict() (v Verdict) {
	withSnapshot(true, func(s *snapshot) { v = verdictOf(s.verdict) })
	return v
}

func verdictOf(v resident.Verdict) Verdict {
	return Verdict{string(v.About), v.Fault, v.Sentence, v.Do, v.Bytes}
}

// addResident reads what the resident memory is for, and judges it. mappings may be nil: then nothing
// is done that takes long, but for a look inside malloc in one percent of the time. It reports whether no collection has
// run since a number of them, or that is 0.
func (s *snapshot) addResident(mappings *resident.Mappings, since uint64) bool {
	o := resident.Options{
		Mappings: mappings, Since: since, Sites: true, Look: true, Heaps: []resident.Holder{},
		Cheap: &resident.Cheap{InUse: s.allocated, Idle: max(0, s.touched()-s.allocated) + s.idleBytes(), Records: s.store + s.metadata()},
	}
	for i := range s.heaps {
		o.Heaps = append(o.Heaps, resident.Holder{Name: s.heaps[i].Name, Bytes: s.heaps[i].Bytes, Count: s.heaps[i].Blocks})
	}
	if s.reading, s.verdict = resident.Process.Judge(o); s.reading == nil {
		return false
	}
	s.parts = s.reading.Table()
	return true
}

// touched is what of the spans had a block in it at some time.
func (s *snapshot) touched() int64 {
	n := s.totals.Large
	for _, c := range s.classes {
		n += c.carvedBytes
	}
	return n
}

// inAll is the label of the row of the table resident that has the sum.
const inAll = "resident in all"

// partRows emits the parts of the resident memory, the largest first, and in a system that says nothing of it none.
func partRows(s *snapshot, emit func([]string, row)) {
	for _, p := range s.parts.Largest(len(s.parts.Parts)) {
		emit([]string{p.Name}, row{part: &p})
	}
}

// serveVerdict answers with a Verdict.
func serveVerdict(w http.ResponseWriter, asJSON bool) {
	v := ReadVerdict()
	if asJSON {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(pagejson.Verdict(v))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, v)
}

// arenasTable looks at the arenas of malloc. It is not in all.json, because threads that allocate wait
// meanwhile.
func arenasTable() pagejson.Table {
	bytes := func(head, help string) pagejson.Heading {
		return pagejson.Heading{Head: head, Unit: "bytes", Kind: Gauge.String(), Help: help}
	}
	t := pagejson.Table{
		Name: "arenas", Title: "Arenas of malloc", Labels: []string{"arena"}, Rows: []pagejson.TableRow{},
		About: "What each arena of malloc has: of glibc, with its free blocks, which are counted while threads that allocate wait; of jemalloc; or the page heap of tcmalloc.",
		Metrics: []pagejson.Heading{
			bytes("system", "Bytes that the arena has from the system."), bytes("free", "Of these, bytes in free blocks, some of which may not be resident."),
			{Head: "free blocks", Unit: "blocks", Kind: Gauge.String(), Help: "How many free blocks there are."},
			{Head: "look", Unit: "seconds", Kind: Gauge.String(), Help: "How long the look at all arenas took, and so threads have waited at most."},
		},
	}
	arenas, took := resident.Process.ReadArenas()
	for i, a := range arenas {
		addRow(&t, []string{strconv.Itoa(i)}, []float64{float64(a.System), float64(a.Free), float64(a.Blocks), took.Seconds()})
	}
	if len(arenas) == 0 {
		t.Note = "The program does not import package libc, or its malloc does not say what its arenas have."
	}
	return t
}

// mappingsTable returns the table of the mappings.
func mappingsTable(m *resident.Mappings) pagejson.Table {
	t := mappingsFrame()
	if m == nil {
		t.Note = "The list of mappings is not there, or is not read, because it has more than 4 MiB, which are about 6,000 mappings: then the parts of C are not told apart."
		return t
	}
	all := m.All
	all.Name = inAll
	for _, s := range append(m.List[:len(m.List):len(m.List)], all) {
		addRow(&t, []string{s.Name}, []float64{float64(s.Resident), float64(s.Anonymous), float64(s.Huge), float64(s.Swap), float64(s.Space), float64(s.Count)})
	}
	return t
}

func mappingsFrame() pagejson.Table {
	gauge := func(head, unit, help string) pagejson.Heading {
		return pagejson.Heading{Head: head, Unit: unit, Kind: Gauge.String(), Help: help}
	}
	return pagejson.Table{
		Name: "mappings", Title: "Mappings",
		About:  "The resident memory as the kernel knows it, by the names of mappings. What has no name is told by its address and its neighbours, so a part of it may belong to another line: the kernel makes one mapping of two that are next to each other.",
		Labels: []string{"mapping"}, Rows: []pagejson.TableRow{},
		Metrics: []pagejson.Heading{
			gauge("resident", "bytes", "Bytes that are in memory."),
			gauge("anonymous", "bytes", "Of these, bytes that are no pages of a file, or were changed since."),
			gauge("huge pages", "bytes", "Of these, bytes in huge pages (AnonHugePages), each of which is resident as a whole, also for one small block."),
			gauge("swapped out", "bytes", "Bytes that were swapped out."),
			gauge("space", "bytes", "Bytes of address space."),
			gauge("mappings", "mappings", "How many mappings have the name."),
		},
	}
}

// longest is the longest look inside malloc so far, in seconds.
func longest(r *row) float64 { return r.all.reading.Malloc.Longest.Round(time.Microsecond).Seconds() }
