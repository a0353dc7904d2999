package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// inspected starts a server with the page, and returns its address.
func inspected(t *testing.T) string {
	t.Helper()
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "shown-by-top"})
	testcall.Must(t, err)
	h.Malloc(1000)
	mux := http.NewServeMux()
	mux.Handle("/debug/cheap/", inspect.Handler(inspect.Options{Title: "inspected"}))
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.Close(); h.DestroyAll() })
	return server.URL
}

func TestTopOnce(t *testing.T) {
	address := inspected(t)
	host := strings.TrimPrefix(address, "http://")
	for _, arg := range []string{address, address + "/debug/cheap", host, host + "/debug/cheap/"} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"top", "-once", arg}, nil, &stdout, &stderr); code != exitOK || stderr.Len() > 0 {
			t.Fatalf("cheap top -once %s: %d, %s", arg, code, &stderr)
		}
		if !strings.Contains(stdout.String(), "\nshown-by-top #") {
			t.Errorf("the heap is not in\n%s", &stdout)
		}
		for line := range strings.Lines(stdout.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("a line of %d columns: %s", n, line)
			}
		}
	}
}

func TestTopFails(t *testing.T) {
	address := inspected(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct {
		code int
		args []string
	}{
		{exitUsage, nil},
		{exitUsage, []string{"-twice", address}},
		{exitUsage, []string{address, "-once"}},
		{exitUsage, []string{address, address}},
		{exitUsage, []string{"-every", "1ms", address}},
		{exitUsage, []string{"-every", "often", address}},
		{exitUsage, []string{"-sort", "size", address}},
		{exitUsage, []string{"-pid", "-1"}},
		{exitUsage, []string{"-pid", "0"}},
		{exitUsage, []string{"-pid", "1", "-once"}},
		{exitUsage, []string{"-pid", "1", address}},
		{exitUsage, []string{"-pid", "1073741824"}},
		{exitUsage, []string{"ftp://localhost"}},
		{exitUsage, []string{"http://"}},
		{exitUsage, []string{""}},
		{exitUsage, []string{"local\nhost"}},
		{exitUsage, []string{"localhost:x"}},
		{exitUsage, []string{"localhost:6060/?a=b"}},
		{exitFailed, []string{"-once", gone.URL}},
		{exitFailed, []string{"-once", address + "/other/"}},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"top"}, c.args...), nil, &stdout, &stderr)
		if code != c.code || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 || !strings.HasPrefix(stderr.String(), "cheap top: ") {
			t.Errorf("cheap top %q: code %d, want %d, stdout %q, stderr %q", c.args, code, c.code, &stdout, &stderr)
		}
	}
}

// TestTopAgain lets the command print three times, and ends it.
func TestTopAgain(t *testing.T) {
	address := inspected(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout lineWriter
	done := make(chan error, 1)
	go func() { done <- topCommand(ctx, []string{"-every", "100ms", address}, nil, &stdout) }()
	stdout.waitFor(t, `(?s)(\nHEAP.*){3}`)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("an interrupt is an error: %v", err)
	}
}
