package inspect

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// ServeLeaks answers with [WriteLeaks].
func ServeLeaks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="cheapleak.pb.gz"`)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	WriteLeaks(w) // an error is that of the connection
}

// ServeSuspects answers with [Suspects]: as text, or, if the query has format=json or the
// client accepts application/json only, as an array in JSON. With gc=1 in the query it collects
// first, as [Collect] does.
func ServeSuspects(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	collectIfAsked(r)
	if r.FormValue("format") == "json" || strings.TrimSpace(r.Header.Get("Accept")) == "application/json" {
		w.Header().Set("Content-Type", "application/json")
		all := listSuspects()
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		e.Encode(all) // an error is that of the connection
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	WriteSuspects(w) // likewise
}

// collectIfAsked collects if the query has gc=1.
func collectIfAsked(r *http.Request) {
	if r.FormValue("gc") != "1" {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), collectFor)
	defer cancel()
	_ = Collect(ctx) // what is not released by then is shown as open
}

// listSuspects returns Suspects, which in JSON is an array.
func listSuspects() []Suspect {
	if all := Suspects(); all != nil {
		return all
	}
	return []Suspect{}
}

// SuspectFigures are the JSON of the leak suspects on the page.
type SuspectFigures struct {
	Time     time.Time `json:"time"`
	Program  string    `json:"program"`
	Advice   string    `json:"advice,omitempty"` // what to set if there are pools that record no stacks
	Suspects []Suspect `json:"suspects"`
}

// serveSuspectFigures answers with SuspectFigures.
func (h *handler) serveSuspectFigures(w http.ResponseWriter, r *http.Request) {
	collectIfAsked(r)
	w.Header().Set("Content-Type", "application/json")
	f := SuspectFigures{Time: time.Now(), Program: programOf(h.o), Advice: leaksAdvice(), Suspects: listSuspects()}
	_ = json.NewEncoder(w).Encode(f) // an error is that of a reader who has gone
}
