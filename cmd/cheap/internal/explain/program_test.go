package explain

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/google/pprof/profile"
)

// aFolder makes a folder with files.
func aFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		testcall.Must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		testcall.Must(t, os.WriteFile(name, []byte(text), 0o644))
	}
	return dir
}

// built builds the program in a folder, in module mode.
func built(t *testing.T, dir string) *Program {
	t.Helper()
	t.Setenv("GOWORK", "off")
	program, err := Build(t.Context(), []string{dir}, t.TempDir())
	testcall.Must(t, err)
	return program
}

// profileOf runs a program to its end, and returns its profile, with the names of C.
func profileOf(t *testing.T, program *Program, args ...string) (*profile.Profile, *Run) {
	t.Helper()
	run, err := program.Run(t.Context(), args, t.TempDir(), 0, nil, os.Stderr)
	testcall.Must(t, err)
	p, err := Read(run.Profile)
	testcall.Must(t, err)
	Symbolize(p)
	return p, run
}

// hasCgo reports whether the go command builds programs with C.
func hasCgo(t *testing.T) bool {
	t.Helper()
	cgo, err := exec.Command("go", "env", "CGO_ENABLED").Output()
	testcall.Must(t, err)
	return strings.TrimSpace(string(cgo)) == "1"
}

// samplesIn returns how many samples are in a function and what it calls.
func samplesIn(p *profile.Profile, function string) (n int64) {
	for _, s := range p.Sample {
		if hasFunction(s, function) {
			n += s.Value[0]
		}
	}
	return n
}

func hasFunction(s *profile.Sample, name string) bool {
	for _, l := range s.Location {
		for _, line := range l.Line {
			if line.Function.Name == name {
				return true
			}
		}
	}
	return false
}

// A readyWriter calls a function when a program has printed that it is ready.
type readyWriter struct {
	text  bytes.Buffer
	ready func()
}

func (w *readyWriter) Write(text []byte) (int, error) {
	n, err := w.text.Write(text)
	if bytes.Contains(w.text.Bytes(), []byte("ready\n")) {
		w.ready()
	}
	return n, err
}

// TestRunDeadlock ends a program in which all goroutines wait for each other. It says so when the
// profile ends, which has kept the runtime from noticing.
func TestRunDeadlock(t *testing.T) {
	dir := aFolder(t, map[string]string{
		"go.mod": "module example.com/prog\n\ngo 1.24\n",
		"main.go": `package main

func main() {
	spin()
	println("ready")
	<-make(chan int)
}
` + spinText,
	})
	program := built(t, dir)
	defer func(d time.Duration) { afterProfile = d }(afterProfile)
	afterProfile = time.Hour // it ends by itself, however late
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := readyWriter{ready: cancel}
	run, err := program.Run(ctx, nil, t.TempDir(), 0, nil, &stderr)
	testcall.Must(t, err)
	if want := "fatal error: all goroutines are asleep - deadlock!"; !strings.Contains(stderr.text.String(), want) || !strings.Contains(stderr.text.String(), "main.main()") {
		t.Errorf("printed %q, want %q and the stack of main", stderr.text.String(), want)
	}
	if run.Ended != "exit status 2" {
		t.Errorf("ended with %q", run.Ended)
	}
	p, err := Read(run.Profile)
	testcall.Must(t, err)
	if samplesIn(p, "main.spin") == 0 {
		t.Error("main.spin has no sample")
	}
}

// TestRunLeavesProcess runs a program that ends before a process that it has started, which has its
// standard error.
func TestRunLeavesProcess(t *testing.T) {
	dir := aFolder(t, map[string]string{
		"go.mod": "module example.com/prog\n\ngo 1.24\n",
		"stay":   "",
		"main.go": `package main

import (
	"os"
	"os/exec"
	"time"
)

func main() {
	if len(os.Args) > 2 {
		for {
			if _, err := os.Stat(os.Args[1]); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	child := exec.Command(os.Args[0], os.Args[1], "child")
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		panic(err)
	}
	spin()
}
` + spinText,
	})
	stay := filepath.Join(dir, "stay")
	defer os.Remove(stay) // the process ends
	program := built(t, dir)
	var stderr bytes.Buffer // by a pipe, which the process keeps open
	run, err := program.Run(t.Context(), []string{stay}, t.TempDir(), 0, nil, &stderr)
	testcall.Must(t, err)
	if run.Ended != "" || run.Over || len(run.Profile) == 0 {
		t.Errorf("ended with %q, over %v, a profile of %d bytes", run.Ended, run.Over, len(run.Profile))
	}
}

// spinText works for a tenth of a second or more: ten samples. It does so however long that takes.
const spinText = `
func spin() (n int) {
	for i := range 1 << 27 {
		n += i * n
	}
	return n
}
`

// TestBuildInit profiles a program that works before main: in the values of variables, and in an
// init function.
func TestBuildInit(t *testing.T) {
	files := map[string]string{
		"go.mod": "module example.com/prog\n\ngo 1.24\n",
		"00.go":  "package main\n\nvar first = ofFirst()\n\n//go:noinline\nfunc ofFirst() int { return spin() + 1 }\n",
		"b.go":   "package main\n\nfunc init() { ofInit() }\n\n//go:noinline\nfunc ofInit() int { return spin() + 1 }\n",
		"main.go": `package main

func main() {}
` + spinText,
	}
	want := []string{"main.ofFirst", "main.ofInit"}
	programs := map[string]string{"Go": ""}
	if hasCgo(t) {
		programs["cgo"] = "package main\n\nimport \"C\"\n\nvar inC = ofC()\n\n//go:noinline\nfunc ofC() int { return spin() + 1 }\n"
	}
	for name, with := range programs {
		t.Run(name, func(t *testing.T) {
			want, files := want, maps.Clone(files)
			if with != "" {
				files["Calls.go"] = with
				want = append(want, "main.ofC")
			}
			program := built(t, aFolder(t, files))
			if exact := with != "" && canTellWhere; program.Exact != exact {
				t.Errorf("Exact is %v, want %v", program.Exact, exact)
			}
			p, _ := profileOf(t, program)
			for _, function := range want {
				if samplesIn(p, function) == 0 {
					t.Errorf("%s has no sample", function)
				}
			}
		})
	}
}
