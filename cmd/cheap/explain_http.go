package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"

	"github.com/cheapgo/cheap/cmd/cheap/internal/explain"
	"github.com/cheapgo/cheap/internal/page/charts"
)

// serveReport serves the page of a report until an interrupt: the next one, if one has ended the
// program.
func serveReport(ctx context.Context, listener net.Listener, r *explain.Report, stderr io.Writer) error {
	if ctx.Err() != nil {
		again, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt)
		defer stop()
		ctx = again
	}
	var text bytes.Buffer
	if err := r.Page(&text, version()); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", charts.Policy)
		w.Write(text.Bytes())
	})
	server := serve(listener, mux)
	fmt.Fprintf(stderr, "cheap explain: the report is at http://%s/\n", listener.Addr())
	<-ctx.Done()
	return server.Close()
}
