package inspect

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
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
	if r.FormValue("gc") == "1" {
		ctx, cancel := context.WithTimeout(r.Context(), collectFor)
		defer cancel()
		Collect(ctx) // what is not released by then is shown as open
	}
	if r.FormValue("format") == "json" || strings.TrimSpace(r.Header.Get("Accept")) == "application/json" {
		w.Header().Set("Content-Type", "application/json")
		all := Suspects()
		if all == nil {
			all = []Suspect{}
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "\t")
		e.Encode(all) // an error is that of the connection
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	WriteSuspects(w) // likewise
}
