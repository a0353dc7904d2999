package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/pace"
)

// run is the command. It returns 2 for wrong arguments, and 1 for later errors.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("inspect", flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("addr", "localhost:6060", "serve at this `address`")
	seconds := flags.Float64("seconds", 0, "end after so many `seconds`; 0 serves until an interrupt")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case *seconds < 0 || flags.NArg() > 0:
		fmt.Fprintln(stderr, "inspect: -seconds is not negative, and there are no arguments")
		return 2
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if *seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*seconds*float64(time.Second)))
		defer cancel()
	}
	if err := serve(ctx, *addr, stdout); err != nil {
		fmt.Fprintln(stderr, "inspect:", err)
		return 1
	}
	return 0
}

// serve serves the page, while the shop below has visitors, until ctx is done.
func serve(ctx context.Context, addr string, stdout io.Writer) error {
	inspect.EnableLeaks()                // the page names the stacks of leak suspects
	inspect.SetRate(inspect.DefaultRate) // and has a heap profile
	if err := pace.Start(pace.Options{Limit: 512 << 20}); err != nil {
		return err
	}
	defer pace.Stop()
	shop, err := newShop()
	if err != nil {
		return err
	}
	defer shop.close()

	mux := http.NewServeMux()
	mux.Handle("/debug/cheap/", inspect.Handler(inspect.Options{Title: "image shop"}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "http://%s/debug/cheap/\n", listener.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()

	var visitors sync.WaitGroup
	for n := range 4 {
		visitors.Go(func() { shop.visit(ctx, uint64(n)) })
	}
	select {
	case err = <-ended: // before it should
	case <-ctx.Done():
		err = server.Close()
	}
	visitors.Wait()
	return err
}
