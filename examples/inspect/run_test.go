package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// start starts the server, and returns the address of the page.
func start(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	done := make(chan int, 1)
	var stderr bytes.Buffer
	go func() { done <- run(ctx, []string{"-addr=localhost:0"}, write, &stderr) }()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("the server ended with %d: %s", code, &stderr)
		}
	})
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return strings.TrimSpace(line)
}

func get(t *testing.T, address string) []byte {
	t.Helper()
	answer, err := http.Get(address)
	testcall.Must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, answer.Status, err)
	}
	return body
}

// TestServer waits until the figures show what the shop does.
func TestServer(t *testing.T) {
	page := start(t)
	if text := string(get(t, page)); !strings.Contains(text, "<h1>image shop</h1>") {
		t.Errorf("the page is %.300s", text)
	}
	if text := string(get(t, strings.Replace(page, "cheap", "pprof", 1))); !strings.Contains(text, "goroutine") {
		t.Errorf("the page of pprof is %.300s", text)
	}
	value := func(r pagejson.Figures, table, label, metric string) float64 {
		for _, t := range r.Tables {
			for _, row := range t.Rows {
				for i, m := range t.Metrics {
					if t.Name == table && row.Labels[0] == label && m.Name == metric {
						return row.Values[i]
					}
				}
			}
		}
		return -1
	}
	for ; ; time.Sleep(100 * time.Millisecond) {
		var r pagejson.Figures
		testcall.Must(t, json.Unmarshal(get(t, page+"all.json"), &r))
		figures := []float64{
			value(r, "heaps", "uploads", "cheap_heap_frees_total"),
			value(r, "pools", "decoder", "cheap_pool_collected_total"),
			value(r, "pools", "decoder", "cheap_pool_released_total") - value(r, "pools", "decoder", "cheap_pool_collected_total"),
			value(r, "pools", "thumbnails", "cheap_pool_live_bytes"),
			value(r, "accounts", "font cache", "cheap_account_held_bytes"),
		}
		enough := true
		for _, f := range figures {
			enough = enough && f > 0
		}
		if enough {
			return
		}
		if end, ok := t.Deadline(); ok && time.Until(end) < 5*time.Second {
			t.Fatalf("the figures are %v", figures)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-seconds=-1"}, {"x"}, {"-port=1"}} {
		var out bytes.Buffer
		if code := run(t.Context(), args, &out, &out); code != 2 {
			t.Errorf("%q: code %d: %s", args, code, &out)
		}
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"-addr=localhost:x"}, &out, &out); code != 1 {
		t.Errorf("a wrong address: code %d: %s", code, &out)
	}
	if code := run(t.Context(), []string{"-addr=localhost:0", "-seconds=0.1"}, &out, &out); code != 0 {
		t.Errorf("a short run: code %d: %s", code, &out)
	}
}
