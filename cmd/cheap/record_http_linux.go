//go:build amd64 || arm64

package main

import (
	"fmt"
	"net"
	"net/http"

	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/cmem/heapprofile"
	"github.com/cheapgo/cheap/internal/page/charts"
)

// serve shows the figures until the server is closed.
func (r *recording) serve(listener net.Listener) *http.Server {
	fmt.Fprintf(r.stderr, "cheap record: the figures are at http://%s/\n", listener.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", r.servePage)
	mux.HandleFunc("GET /profile", r.serveProfile)
	return serve(listener, mux)
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

// servePage shows the page of now.
func (r *recording) servePage(w http.ResponseWriter, q *http.Request) {
	sites, process, wait, err := r.read()
	if err == nil && wait != "" {
		w.Header().Set("Refresh", "1")
		fmt.Fprintln(w, wait)
		return
	}
	var c shared.Counts
	if err == nil {
		c, err = r.file.Counts()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", charts.Policy)
	now := &recording{recordSettings: r.recordSettings, file: r.file, parts: r.parts} // what the end is yet to set stays
	page := now.makePage(c, process, sites)
	page.Facts = append(page.Facts, "The program runs: the end is the moment at which this page was made. The profile is at /profile.")
	page.Write(w)
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
