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

	"github.com/cheapgo/cheap/cmd/cheap/internal/explain"
	"github.com/cheapgo/cheap/internal/replay/peers"
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
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
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

// TestExplainHeap names a heap profile.
func TestExplainHeap(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heap.pprof")
	var b bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&b, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"explain", file}, nil, &stdout, &stderr)
	if want := "this is a heap profile, and not a CPU profile"; code != exitUsage || !strings.Contains(stderr.String(), want) || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// TestExplainFolders gives folders that are of another module than the one that is current, and
// what is no folder of a program.
func TestExplainFolders(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"prog/go.mod":   "module example.com/prog\n\ngo 1.26.0\n",
		"prog/main.go":  "package main\n\nfunc main() { panic(1) }\n",
		"prog/lib/a.go": "package lib\n",
		"prog/none/a":   "",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	t.Chdir(dir)
	for _, c := range []struct {
		arg, want string
		code      int
	}{
		{"prog", "one that panics", exitFailed}, // it is found, built and run
		{"prog/lib", "its package is not main", exitUsage},
		{"prog/none", "it has no Go files", exitUsage},
		{"./nofolder", "there is no such folder", exitUsage},
		{"./...", "there is no such folder", exitUsage},
		{"nofolder", "no such file", exitUsage},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"explain", c.arg}, nil, &stdout, &stderr)
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		if code != c.code || !strings.Contains(lines[len(lines)-1], c.want) || code == exitUsage && len(lines) != 1 {
			t.Errorf("%s: exit code %d, want %d and %q: %s", c.arg, code, c.code, c.want, stderr.String())
		}
	}
}

// TestExplainFiles gives files of Go, of which one needs another, with arguments.
func TestExplainFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.com/prog\n\ngo 1.26.0\n",
		"sub/prog.go":   "package main\n\nimport \"os\"\n\nfunc main() { println(work(), len(os.Args), os.Args[1]) }\n",
		"sub/work.go":   "package main\n\nfunc work() (n int) {\n\tfor i := range 1 << 28 {\n\t\tn += i * n\n\t}\n\treturn n\n}\n",
		"sub/broken.go": "package main\n\nfunc nothing() { missing() }\n",
		"lib.go":        "package lib\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	t.Chdir(dir)
	for _, c := range []struct {
		args   string
		want   string // on stderr
		report string
		code   int
	}{
		{"sub/prog.go sub/work.go file.txt -n", "0 3 file.txt", "sub/prog.go sub/work.go file.txt -n, go1.", exitOK},
		{"./sub/work.go ./sub/prog.go x", "0 2 x", "./sub/work.go ./sub/prog.go x, go1.", exitOK},
		{filepath.Join(dir, "sub/prog.go") + " " + filepath.Join(dir, "sub/work.go") + " x", "0 2 x", "work.go x, go1.", exitOK},
		{"sub/prog.go", "undefined: work", "", exitFailed},
		{"lib.go", "lib.go is no program: its package is not main", "", exitUsage},
		{"none.go", "none.go is no program: there is no such file", "", exitUsage},
		{"sub/prog.go none.go", "none.go is no program: there is no such file", "", exitUsage},
		{"./none.go", "./none.go is no program: there is no such file", "", exitUsage},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"explain"}, strings.Fields(c.args)...), nil, &stdout, &stderr)
		line := strings.TrimSpace(stderr.String())
		if code != c.code || !strings.Contains(line, c.want) || strings.Contains(line, "\n") || !strings.Contains(stdout.String(), c.report) {
			t.Errorf("%s: exit code %d, want %d and %q: %s%s", c.args, code, c.code, c.want, stderr.String(), stdout.String())
		}
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
	if err := waysCommand(t.Context(), &stdout); err != nil {
		t.Fatal(err)
	}
	var ns map[string]float64
	if err := json.Unmarshal(stdout.Bytes(), &ns); err != nil {
		t.Fatal(err)
	}
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
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	t.Chdir(dir)
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
			want := ", go1." // after a time the program may not even have begun
			if name == "interrupt" {
				want = "main.main|other Go code"
			}
			if !regexp.MustCompile(want).MatchString(stdout.String()) {
				t.Errorf("printed %s", stdout.String())
			}
		})
	}
}
