package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/explain"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// busyProfile is a CPU profile of this process, of some dozens of samples: the work has a length,
// however long that takes.
var busyProfile = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	if err := pprof.StartCPUProfile(&b); err != nil {
		panic(err)
	}
	for i := range 1 << 27 {
		busySink += i * busySink
	}
	pprof.StopCPUProfile()
	return b.Bytes()
})

var busySink int

// TestExplainURL explains what a server answers, with the address as it is and with what it
// leaves out.
func TestExplainURL(t *testing.T) {
	data := busyProfile()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked = append(asked, q.URL.String())
		if q.URL.Path != "/debug/pprof/profile" {
			http.NotFound(w, q)
			return
		}
		w.Write(data)
	}))
	defer server.Close()
	for _, c := range []struct{ path, asked string }{
		{"", "/debug/pprof/profile?seconds=2"},
		{"/debug/pprof/", "/debug/pprof/profile?seconds=2"},
		{"/debug/pprof/profile?seconds=7", "/debug/pprof/profile?seconds=7"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"explain", "-seconds", "2", "-json", server.URL + c.path}, nil, &stdout, &stderr); code != exitOK {
			t.Fatalf("%s: exit code %d: %s", c.path, code, stderr.String())
		}
		var r explain.Report
		testcall.Must(t, json.Unmarshal(stdout.Bytes(), &r))
		if got := asked[len(asked)-1]; got != c.asked || r.Samples == 0 {
			t.Errorf("%s: asked for %s, want %s; %d samples", c.path, got, c.asked, r.Samples)
		}
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"explain", server.URL + "/debug/other"}, nil, &stdout, &stderr)
	if code != exitFailed || !strings.Contains(stderr.String(), "404") || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// TestExplainBench measures each of the figures of the advice.
func TestExplainBench(t *testing.T) {
	if _, err := peers.Lookup("libc"); err != nil {
		return // two of them are about C
	}
	objects, rounds := waysObjects, waysRounds
	t.Cleanup(func() { waysObjects, waysRounds = objects, rounds })
	waysObjects, waysRounds = 1000, 1
	var stdout bytes.Buffer
	testcall.Must(t, waysCommand(t.Context(), &stdout))
	var ns map[string]float64
	testcall.Must(t, json.Unmarshal(stdout.Bytes(), &ns))
	for name := range explain.Stored.Ns {
		if ns[name] <= 0 {
			t.Errorf("%s: %v ns", name, ns[name])
		}
	}
}

// TestExplainServer ends a program that does not end by itself: after a time, and by an
// interrupt.
func TestExplainServer(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/server\n\ngo 1.26.0\n",
		"main.go": `package main

func main() {
	n := 1
	for i := range 1 << 29 {
		n += i * n
	}
	println("ready")
	for ; ; n++ {
		n *= n
	}
}
`,
	} {
		testcall.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	t.Setenv("GOWORK", "off")
	t.Chdir(dir)
	if s, _, err := parseExplain([]string{"."}); err != nil || s.length != time.Minute {
		t.Errorf("without -for: %v, %v", s, err)
	}
	for name, args := range map[string][]string{"time": {"-for", "500ms", "."}, "interrupt": {"."}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var stdout bytes.Buffer
			var stderr lineWriter
			code := make(chan int)
			go func() { code <- run(ctx, append([]string{"explain"}, args...), nil, &stdout, &stderr) }()
			if name == "interrupt" {
				stderr.waitFor(t, "ready\n")
				cancel()
			}
			if code := <-code; code != exitOK {
				t.Fatalf("exit code %d: %s", code, &stderr)
			}
			want := "Note: the program did not end by itself within 500ms" // it may not even have begun
			if name == "interrupt" {
				want = "main.main|other Go code"
			}
			if !regexp.MustCompile(want).MatchString(stdout.String()) {
				t.Errorf("printed %s", stdout.String())
			}
		})
	}
}
