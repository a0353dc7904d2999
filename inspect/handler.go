package inspect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// Options configure [Handler]. The zero value is the default.
type Options struct {
	// Title is for people to read, at the top of the page. The default is the name of the
	// program.
	Title string

	// Remote answers requests from other machines as well. By default a request is answered only
	// if it comes from this machine, was sent to it under its own name (localhost or a
	// loopback address), and came through no proxy. The page shows names, sizes and
	// counts, and no contents of memory.
	Remote bool

	// Access, if not nil, is called for each request that is not refused already. If it
	// returns false the request is refused; Access may have answered the request by itself.
	Access func(w http.ResponseWriter, r *http.Request) bool

	// Pprof is the address to which the page links for Go's own profiles. The default is
	// "/debug/pprof/".
	Pprof string

	// Growth is the interval after which the program looks at its memory again, whether a page is open or not: what
	// grows is told by that. In a program that imports module cmem, the page shows the stacks of the C heap that have
	// grown in each of the last six intervals. The default is ten seconds; a second is the shortest. Of several
	// handlers the shortest interval counts.
	Growth time.Duration
}

// Handler returns the page, its tables and the purge. Importing the package registers
// nothing, so the program does:
//
//	http.Handle("/debug/cheap/", inspect.Handler(inspect.Options{}))
//
// Below the address it is registered at, which ends in a slash, there are the following. The fields of
// the JSON are those of github.com/cheapgo/cheap/internal/page/pagejson, which go doc shows.
//
//	              the page, which reads all.json every two seconds while it is open
//	all.json      all tables, and the verdict
//	all.txt       all tables as text
//	X.json        table X alone, likewise: resident, process, threads, mappings, totals, pace, caches, heaps,
//	              classes, accounts, pools; in a program that imports module cmem, cmem and libraries
//	X.txt         the same as text; resident.txt begins with the verdict
//	arenas.json   what each arena of malloc has; arenas.txt as text. Threads that allocate wait meanwhile
//	verdict.json  what holds the memory, and what to do; verdict.txt as text
//	heap          the profile of [WriteHeap], for go tool pprof
//	lifetimes     the profile of [WriteLifetimes]
//	where         the text of [Where], with the ten largest of each
//	suspects      who holds resources, and who forgot to close them: see [ServeSuspects]
//	suspects.json the same as the page shows it; suspects.txt as text
//	leaks         the profile of [WriteLeaks], after a collection; see [ServeSuspects]
//	cmem          the profile of the C heap, in a program that imports module cmem; with seconds=30
//	              in the query, what changes in the C heap from the request on. POST sets the rate of its
//	              samples to rate=524288, and so turns on a program with CHEAP_CMEM=ready
//	c.html        the C heap over time and by stack, as a page, likewise. Each request for it is a moment,
//	              which it can be compared with; the last 32 or so are kept
//	mapped        the profile of what C code has mapped without malloc, likewise; mapped.txt, by library
//	growth.json   the stacks of the C heap that keep growing, as the page shows them; growth.txt as text
//	history.json  the points of the chart: one for each request of all.json and each interval of Options.Growth
//	trim          POST calls [cheap.Trim]; not from the page of another site
//
// The page needs no other file and no network. To read it costs the program what [ReadVerdict]
// costs, and, every ten seconds, what [WriteSuspects] costs. From the call of Handler until nobody refers to its result,
// the program does so by itself after each interval of Options.Growth, so that the first request has the answer. The
// list of mappings is read in half a percent of the time at most. In a program that imports module cmem, each interval costs
// some 0.3 ms for each thousand stacks of the C heap as well.
func Handler(o Options) http.Handler {
	if o.Growth < 0 {
		panic(&cheap.MisuseError{Op: "inspect.Handler", Reason: "Options.Growth is negative"})
	}
	h := &handler{o: o, page: newPage(o)}
	h.watch(max(cmp.Or(o.Growth, defaultGrowth), shortestGrowth))
	return http.HandlerFunc(h.serve)
}

type handler struct {
	o        Options
	page     *page
	cross    http.CrossOriginProtection
	trimming sync.Mutex
	history  history
	moments  moments
	looked   time.Duration // how long the last look of watch took, at what follows; only watch has it
	at       time.Time
}

const (
	defaultGrowth  = 10 * time.Second
	shortestGrowth = time.Second

	// lookShare is the share of the time in which watch reads the list of mappings: one in so many.
	lookShare = 200
)

// watch looks now and after each interval, as long as the handler is in use.
func (h *handler) watch(every time.Duration) {
	resident.Process.SetInterval(every)
	again := weak.Make(h)
	var tick func()
	tick = func() {
		if h := again.Value(); h != nil {
			h.look()
			time.AfterFunc(every, tick)
		}
	}
	h.look()
	time.AfterFunc(every, tick)
}

// look reads what the page shows, or, where that takes too long, what metrics show.
func (h *handler) look() {
	now := time.Now()
	if now.Sub(h.at) < lookShare*h.looked {
		withSnapshot(false, func(*snapshot) {})
		return
	}
	r, _ := newReport(h.o, "all")
	h.history.add(&r)
	h.at, h.looked = now, time.Since(now)
}

func newReport(o Options, name string) (r pagejson.Figures, ok bool) {
	r = pagejson.Figures{Time: time.Now(), Program: programOf(o)}
	if name == "arenas" {
		r.Tables = []pagejson.Table{arenasTable()}
		return r, true
	}
	withSnapshot(true, func(s *snapshot) {
		r.Tables, r.Verdict, r.Overview = s.tables(), pagejson.Verdict(verdictOf(s.verdict)), s.overview()
	})
	if name == "all" {
		return r, true
	}
	r.Overview = nil
	for _, t := range r.Tables {
		if t.Name == name {
			r.Tables = []pagejson.Table{t}
			return r, true
		}
	}
	return r, false
}

// serve answers a request.
func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	h.setHeaders(w.Header())
	if !h.admits(w, r) {
		return
	}
	name := ""
	if !strings.HasSuffix(r.URL.Path, "/") {
		name = path.Base(r.URL.Path)
	}
	if name == "trim" {
		h.trim(w, r)
		return
	}
	if name == "cmem" && r.Method == http.MethodPost {
		h.setCRate(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	h.find(name)(w, r)
}

// setHeaders sets what browsers are to know of each answer.
func (h *handler) setHeaders(head http.Header) {
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Content-Security-Policy", h.page.policy)
}

// admits reports whether the request is answered. If it is not, it was refused.
func (h *handler) admits(w http.ResponseWriter, r *http.Request) bool {
	if !h.o.Remote && !isLocal(r) {
		http.Error(w, "only for requests from the machine itself; see Options.Remote of package inspect", http.StatusForbidden)
		return false
	}
	if h.o.Access == nil {
		return true
	}
	answered := &answer{ResponseWriter: w}
	if h.o.Access(answered, r) {
		return true
	}
	if !answered.begun {
		http.Error(w, "refused", http.StatusForbidden)
	}
	return false
}

// find returns what answers GET of a name.
func (h *handler) find(name string) http.HandlerFunc {
	if name == "c.html" {
		return h.serveCPage
	}
	for _, l := range allLinks() {
		if l.Name == name {
			return l.serve
		}
	}
	switch name {
	case "":
		return h.servePage
	case "suspects.json":
		return h.serveSuspectFigures
	case "suspects.txt":
		return serveSuspectText
	case "growth.json", "growth.txt":
		return func(w http.ResponseWriter, r *http.Request) { h.serveGrowth(w, r, name == "growth.json") }
	case "mapped", "mapped.txt":
		return func(w http.ResponseWriter, _ *http.Request) { serveMapped(w, name) }
	case "verdict.json", "verdict.txt":
		return func(w http.ResponseWriter, _ *http.Request) { serveVerdict(w, name == "verdict.json") }
	case "history.json":
		return h.serveHistory
	}
	return func(w http.ResponseWriter, r *http.Request) { h.serveTables(w, r, name) }
}

func (h *handler) servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	h.page.write(w)
}

// An error of a write is, here and below, that of a reader who has gone.

func serveSuspectText(w http.ResponseWriter, r *http.Request) {
	if collectIfAsked(w, r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = WriteSuspects(w)
	}
}

func (h *handler) serveHistory(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h.history.all())
}

// serveTables answers a request for all tables, or one, as JSON or text.
func (h *handler) serveTables(w http.ResponseWriter, r *http.Request, name string) {
	table, format, _ := strings.Cut(name, ".")
	if format != "json" && format != "txt" {
		http.NotFound(w, r)
		return
	}
	report, ok := newReport(h.o, table)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if report.Overview != nil {
		h.history.add(&report)
	}
	if format == "json" {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	var text bytes.Buffer
	o := report.Overview
	switch {
	case o != nil:
		fmt.Fprintf(&text, "# Verdict\n%s\n\n", strings.TrimSpace(o.Sentence+" "+o.Next))
		if o.Pace != "" {
			fmt.Fprintf(&text, "Pace: %s.\n\n", o.Pace)
		}
	case table == "resident":
		fmt.Fprintf(&text, "# Verdict\n%v\n\n", Verdict(report.Verdict))
	}
	if o != nil && len(o.Warnings) > 0 {
		fmt.Fprintf(&text, "# What does not fit\n%s\n\n", strings.Join(o.Warnings, "\n"))
	}
	for i := range report.Tables {
		if i > 0 {
			text.WriteByte('\n')
		}
		writeTable(&text, &report.Tables[i])
	}
	_, _ = text.WriteTo(w)
}

// trim gives idle memory back, and goes back to the page if a form has asked for it.
func (h *handler) trim(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	if err := h.cross.Check(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if !h.trimming.TryLock() {
		http.Error(w, "another Trim runs", http.StatusConflict)
		return
	}
	defer h.trimming.Unlock()
	cheap.Trim()
	w.WriteHeader(http.StatusNoContent)
}

// isLocal reports whether a request comes from this machine, and was sent to it by its own
// name. A page of another site may have the browser ask this machine under a name of its own.
func isLocal(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	to, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && to.Unmap().IsLoopback()
}

// answer notes whether Options.Access has answered.
type answer struct {
	http.ResponseWriter
	begun bool
}

func (a *answer) WriteHeader(code int) { a.begun = true; a.ResponseWriter.WriteHeader(code) }

func (a *answer) Write(b []byte) (int, error) { a.begun = true; return a.ResponseWriter.Write(b) }
