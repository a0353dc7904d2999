package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// listen listens at an address of -http. Without a host it is one of this machine only, as for
// go tool pprof.
func listen(address string) (net.Listener, error) {
	if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		address = net.JoinHostPort("localhost", port)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usagef("-http: %v; give an address such as localhost:6061", err)
	}
	return listener, nil
}

// serve answers until the server is closed.
func serve(listener net.Listener, handler http.Handler) *http.Server {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	return server
}

// get returns what an address answers in a time, at most a gigabyte: it may be anything. The question
// is that to a user whose address answers something else.
func get(ctx context.Context, address string, most time.Duration, question string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %q; %s", address, answer.Status, question)
	}
	return io.ReadAll(io.LimitReader(answer.Body, 1<<30))
}
