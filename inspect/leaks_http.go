package inspect

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/cheapgo/cheap/inspect/internal/suspects"
	"github.com/cheapgo/cheap/internal/page/pagejson"
)

// ServeLeaks answers with [WriteLeaks], which collects. Who may ask is as in [ServeSuspects].
func ServeLeaks(w http.ResponseWriter, r *http.Request) {
	if !mayCollect(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="cheapleak.pb.gz"`)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	WriteLeaks(w) // an error is that of the connection
}

// ServeSuspects answers with what [WriteSuspects] writes: as text, or, if the query has format=json or the
// client accepts application/json only, as an array in JSON, of pagejson.Suspect: see [Handler].
// With gc=1 in the query it collects first, as [Collect] does.
//
// A GET that collects is what [net/http/pprof] has for its profile heap, with gc=1 as well, and
// what go tool pprof and curl send. It changes nothing that the next collection would not
// change. Who may send it is up to the program, as for any profile: see Options.Access. A
// request that collects is refused if a browser says that a page of another site sends it, and
// that it does not follow a link.
func ServeSuspects(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !collectIfAsked(w, r) {
		return
	}
	if r.FormValue("format") == "json" || strings.TrimSpace(r.Header.Get("Accept")) == "application/json" {
		w.Header().Set("Content-Type", "application/json")
		all := listSuspects()
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		e.Encode(all) // an error is that of the connection
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	WriteSuspects(w) // an error is that of the connection
}

// collectIfAsked collects if the query has gc=1. It returns false if it has refused that.
func collectIfAsked(w http.ResponseWriter, r *http.Request) bool {
	if r.FormValue("gc") != "1" {
		return true
	}
	if !mayCollect(w, r) {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), collectFor)
	defer cancel()
	_ = Collect(ctx) // what is not released by then is shown as open
	return true
}

// mayCollect reports whether the request may collect. It refuses a request that a page of another
// site has a browser send by itself, as for an image.
func mayCollect(w http.ResponseWriter, r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin": // no browser, or an address that was typed, or the page
		return true
	}
	if r.Header.Get("Sec-Fetch-Dest") == "document" {
		return true
	}
	http.Error(w, "no collection for the page of another site", http.StatusForbidden)
	return false
}

// listSuspects returns the suspects, which in JSON are an array.
func listSuspects() []pagejson.Suspect {
	return append([]pagejson.Suspect{}, suspects.Read()...)
}

// serveSuspectFigures answers with SuspectFigures.
func (h *handler) serveSuspectFigures(w http.ResponseWriter, r *http.Request) {
	if !collectIfAsked(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	f := pagejson.SuspectFigures{Time: time.Now(), Program: programOf(h.o), Advice: leaksAdvice(), Suspects: listSuspects()}
	growing := growing(f.Program)
	f.Largest = largest(f.Suspects, growing, f.Advice != "")
	if len(f.Largest) == 0 {
		f.None = noneLargest(growing, f.Advice)
	}
	_ = json.NewEncoder(w).Encode(f) // an error is that of a reader who has gone
}
