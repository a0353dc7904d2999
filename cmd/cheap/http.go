package main

import (
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
