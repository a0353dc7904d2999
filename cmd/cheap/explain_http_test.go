package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestExplainHTTP reads the page, until an interrupt ends the command.
func TestExplainHTTP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpu.pprof")
	testcall.Must(t, os.WriteFile(file, busyProfile(), 0o644))
	for _, given := range []string{"localhost:0", ":0"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stdout, stderr lineWriter
		code := make(chan int)
		go func() { code <- run(ctx, []string{"explain", "-http", given, file}, nil, &stdout, &stderr) }()
		address := stderr.waitFor(t, `cheap explain: the report is at http://(\S+)/\n`)[1]
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err != nil || !ip.IsLoopback() {
			t.Errorf("%s: the address is %s", given, address)
		}
		if !strings.Contains(stdout.String(), "by mechanism") {
			t.Errorf("printed %q", stdout.String())
		}
		answer, err := http.Get("http://" + address + "/")
		testcall.Must(t, err)
		page, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(page, []byte("Flame graph")) {
			t.Errorf("%s, %v: %.100s", answer.Status, err, page)
		}
		if kind, policy := answer.Header.Get("Content-Type"), answer.Header.Get("Content-Security-Policy"); kind != "text/html; charset=utf-8" || !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("the headers are %v", answer.Header)
		}
		answer, err = http.Get("http://" + address + "/other")
		testcall.Must(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound {
			t.Errorf("/other: %s", answer.Status)
		}
		cancel()
		select {
		case c := <-code:
			if c != exitOK {
				t.Errorf("exit code %d: %s", c, stderr.String())
			}
		case <-untilDeadline(t).Done():
			t.Fatal("an interrupt does not end it")
		}
	}
}

// An address that cannot be had is answered before the profile is read.
func TestExplainHTTPAddress(t *testing.T) {
	for _, address := range []string{"nowhere", "256.256.256.256:1", "localhost:none"} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"explain", "-http", address, "nofile"}, nil, &stdout, &stderr)
		if want := "give an address such as localhost:6061"; code != exitUsage || !strings.Contains(stderr.String(), want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d: %s", address, code, stderr.String())
		}
	}
}
