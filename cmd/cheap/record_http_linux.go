//go:build amd64 || arm64

package main

import (
	"cmp"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/internal/page/figure"
)

// serve shows the figures until the server is closed.
func (r *recording) serve(listener net.Listener) *http.Server {
	fmt.Fprintf(r.stderr, "cheap record: the figures are at http://%s/\n", listener.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", r.servePage)
	mux.HandleFunc("GET /profile", r.serveProfile)
	return serve(listener, mux)
}

// A livePage is what the page shows.
type livePage struct {
	Name      string
	Wait      string // why there are no figures
	Counts    shared.Counts
	Libraries []heapprofile.Library
}

var livePageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"bytes":     func(n any) string { return byteCount(wide(n)) },
	"inUse":     inUse,
	"thousands": func(n any) string { return figure.Thousands(int(wide(n))) },
}).Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="2">
<title>{{.Name}}: C heap</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em; color-scheme: light dark; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { text-align: right; padding: .2em 1em .2em 0; border-bottom: 1px solid #8884; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
</style>
<h1>The C heap of {{.Name}}</h1>
{{if .Wait}}<p>{{.Wait}}</p>{{else}}{{with .Counts}}
<table>
<tr><td>in use<td>{{if .LiveSamples}}{{bytes .Live}}, ± {{bytes .LiveError}}{{else}}{{inUse .}}{{end}}
<tr><td>in use at most<td>{{bytes .Peak}}, ± {{bytes .PeakError}}
<tr><td>calls of malloc and its like<td>{{thousands .Mallocs}}, for {{bytes .Bytes}}
<tr><td>calls of free<td>{{thousands .Frees}}
<tr><td>samples<td>{{thousands .Samples}}, one in {{bytes .Rate}}
</table>{{end}}
<table>
<tr><th>library<th>in use<th>blocks<th>in use at most<th>allocated
{{range .Libraries}}<tr><td>{{.Name}}<td>{{bytes .Live}}<td>{{thousands .Blocks}}<td>{{bytes .Peak}}<td>{{bytes .Allocs}}
{{end}}</table>
<p>“At most” is what each of them had when all together had the most. Bytes in use are estimates.</p>
<p><a href="profile">The profile</a>, for go tool pprof</p>{{end}}
</html>
`))

// wide returns an integer of any type of the page.
func wide(n any) int64 {
	switch n := n.(type) {
	case int64:
		return n
	case uint64:
		return int64(n)
	}
	return 0
}

// read reads the figures of now. wait says why there are none.
func (r *recording) read() (sites []heapprofile.Site, process *heapprofile.Process, wait string, err error) {
	if !r.file.Started() {
		return nil, nil, "The program has not started.", nil
	}
	if off := r.file.Off(); off != "" {
		return nil, nil, "Nothing is recorded: " + off + ".", nil
	}
	if sites, err = r.file.Sites(); err == nil {
		process, err = r.file.Process(r.program)
	}
	return sites, process, "", err
}

func (r *recording) servePage(w http.ResponseWriter, q *http.Request) {
	p := livePage{Name: filepath.Base(r.path)}
	sites, process, wait, err := r.read()
	if p.Wait = wait; err == nil && wait == "" {
		p.Libraries = process.Libraries(sites)
		slices.SortStableFunc(p.Libraries, func(x, y heapprofile.Library) int { return cmp.Compare(y.Live, x.Live) })
		p.Counts, err = r.file.Counts()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	livePageTemplate.Execute(w, p)
}

func (r *recording) serveProfile(w http.ResponseWriter, q *http.Request) {
	sites, process, wait, err := r.read()
	if err == nil && wait != "" {
		http.Error(w, wait, http.StatusServiceUnavailable)
		return
	}
	if err == nil {
		profile, wrong := process.Profile(sites, r.rate)
		if err = wrong; err == nil {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Disposition", `attachment; filename="profile.pb.gz"`)
			err = profile.Write(w)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
