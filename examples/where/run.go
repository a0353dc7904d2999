package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/cheapgo/cheap/cmem"
	"github.com/cheapgo/cheap/inspect"
)

// settings are what the arguments say.
type settings struct {
	addr    string
	fix     bool
	rate    int // requests in a second
	growth  time.Duration
	seconds float64
}

// run is the command. It returns 2 for wrong arguments, and 1 for later errors.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("where", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.addr, "addr", "localhost:6060", "serve at this `address`")
	flags.BoolVar(&s.fix, "fix", false, "close all rows")
	flags.IntVar(&s.rate, "rate", 2, "make so many `requests` in a second")
	flags.DurationVar(&s.growth, "growth", 10*time.Second, "look for stacks that grow after this `time`, again and again")
	flags.Float64Var(&s.seconds, "seconds", 0, "end after so many `seconds`; 0 serves until an interrupt")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case s.seconds < 0 || s.rate < 1 || s.rate > 10_000 || s.growth < time.Second || flags.NArg() > 0:
		fmt.Fprintln(stderr, "where: -seconds is not negative, -rate is from 1 to 10,000, -growth at least a second, and there are no arguments")
		return 2
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if s.seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(s.seconds*float64(time.Second)))
		defer cancel()
	}
	if err := serve(ctx, s, stdout); err != nil {
		fmt.Fprintln(stderr, "where:", err)
		return 1
	}
	return 0
}

// serve serves the pages, and makes requests to the guestbook, until ctx is done.
func serve(ctx context.Context, s settings, stdout io.Writer) error {
	g, err := newGuestbook(s.fix)
	if err != nil {
		return err
	}
	defer g.close()
	mux := http.NewServeMux()
	mux.Handle("/debug/cheap/", inspect.Handler(inspect.Options{Title: "guestbook", Growth: s.growth}))
	mux.Handle("/debug/pprof/", http.DefaultServeMux)
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "http://%s/debug/cheap/\n", listener.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	defer server.Close()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	requests := time.NewTicker(time.Second / time.Duration(s.rate))
	defer requests.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-requests.C:
			if err := g.visit(n); err != nil {
				return err
			}
		}
	}
}
