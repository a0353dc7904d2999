package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/resident"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// cmemState reports whether module cmem is in the program, and why it does nothing, or "".
func cmemState() (has bool, why string) {
	c := census.C()
	if c == nil {
		return false, ""
	}
	if off := c.Off(); off != "" {
		return true, "Module cmem does nothing: " + off + "."
	}
	return true, ""
}

// cmemRuns reports whether the C heap is counted.
func cmemRuns() bool {
	has, why := cmemState()
	return has && why == ""
}

// addC adds the counts of the C heap. No counter goes down.
func (r *statReader) addC(s *snapshot) {
	if !cmemRuns() {
		return
	}
	heap := census.C()
	c := heap.Read()
	c.Mallocs, c.Frees, c.Bytes = max(c.Mallocs, r.c.Mallocs), max(c.Frees, r.c.Frees), max(c.Bytes, r.c.Bytes)
	r.c = c
	s.c = &c
	for _, l := range heap.Libraries(nil) {
		s.libraries = append(s.libraries, libraryFigures{l, []string{l.Name}})
	}
}

// allLinks returns links, and those to the C heap if it is counted.
func allLinks() []link {
	if !cmemRuns() {
		return links
	}
	return append(links[:len(links):len(links)],
		link{"c.html", "the C heap over time and by stack, as a page", nil},
		link{"cmem", "blocks of C by stack, for go tool pprof", serveCmemProfile})
}

// mostSeconds bounds how long a request for a difference takes.
const mostSeconds = 3600

// serveCmemProfile serves the profile of the C heap, or of what changes in it meanwhile.
func serveCmemProfile(w http.ResponseWriter, r *http.Request) {
	name := "cmem"
	var d time.Duration
	if text := r.FormValue("seconds"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostSeconds {
			http.Error(w, fmt.Sprintf("seconds is a number from 1 to %d", mostSeconds), http.StatusBadRequest)
			return
		}
		d, name = time.Duration(n)*time.Second, "cmem-since"
		if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 && d >= s.WriteTimeout {
			http.Error(w, "seconds is more than the WriteTimeout of the server", http.StatusBadRequest)
			return
		}
	}
	var b bytes.Buffer
	if err := census.C().WriteProfile(&b, d, r.Context().Done()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sendProfile(w, name, &b)
}

// setCRate sets the rate of samples of the C heap: to rate in the query, or to the default.
func (h *handler) setCRate(w http.ResponseWriter, r *http.Request) {
	if err := h.cross.Check(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	rater, ok := census.C().(census.CRater)
	if !ok {
		http.Error(w, "module cmem is not in the program", http.StatusNotFound)
		return
	}
	n := sample.DefaultRate
	if text := r.FormValue("rate"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 0 {
			http.Error(w, "rate is a number of bytes", http.StatusBadRequest)
			return
		}
	}
	old, err := rater.SetRate(n)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "One sample for %d bytes that are allocated; it was %d.\n", n, old)
}

// serveMapped serves what C code has mapped without malloc: the profile mapped, or mapped.txt.
func serveMapped(w http.ResponseWriter, name string) {
	mapper, ok := census.C().(census.CMapper)
	if !ok || !cmemRuns() {
		http.Error(w, "module cmem is not in the program, or does nothing", http.StatusNotFound)
		return
	}
	write := mapper.WriteMapped
	if name == "mapped" {
		write = mapper.WriteMappedProfile
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if name == "mapped" {
		sendProfile(w, name, &b)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // an error is that of a reader who has gone
}

// growing returns what the stacks of the C heap have shown.
func growing(program string) pagejson.GrowthFigures {
	f := pagejson.GrowthFigures{Time: time.Now(), Program: program, Suspects: []pagejson.Growth{}}
	switch has, why := cmemState(); {
	case !has:
		f.Note = "The program does not import module cmem."
		return f
	case why != "":
		f.Note = why
		return f
	}
	g, ended, left := resident.Process.Growing()
	if f.Seconds = g.Over.Seconds(); !ended.IsZero() {
		f.Time = ended
	}
	for _, s := range g.Sites {
		f.Suspects = append(f.Suspects, pagejson.Growth{Library: s.Library, Live: s.Live, Grown: s.Grown, Error: s.GrownError, Stack: s.Stack})
	}
	switch {
	case left > 0 && len(g.Sites) == 0:
		f.Note = fmt.Sprintf("The first suspects can be named in %v.", left)
	case len(g.Sites) > 0 && !g.Steady:
		f.Note = fmt.Sprintf("These have grown in the last %v, and C as a whole for longer. What grows in %d intervals one after the other is more certain.", over(f), resident.Intervals)
	}
	return f
}

// over returns the time of the figures, in which stacks have grown.
func over(f pagejson.GrowthFigures) time.Duration {
	return time.Duration(f.Seconds * 1e9).Round(time.Second)
}

// serveGrowth answers with GrowthFigures.
func (h *handler) serveGrowth(w http.ResponseWriter, _ *http.Request, asJSON bool) {
	f := growing(programOf(h.o))
	if asJSON {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(f) // an error is that of a reader who has gone
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if f.Note != "" {
		fmt.Fprintln(w, f.Note)
	}
	for i, s := range f.Suspects {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: about %s in use, grown by %s ± %s in %v; allocated by\n%s",
			s.Library, bytesText(s.Live), bytesText(s.Grown), bytesText(s.Error), over(f), s.Stack)
	}
	if len(f.Suspects) == 0 && f.Note == "" {
		fmt.Fprintf(w, "No stack has grown in each of the last %d intervals, which are %v in all.\n", resident.Intervals, over(f))
	}
}
