//go:build cgo && (amd64 || arm64)

package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestRecordLeak records a program that ends by os.Exit, in each way to build it.
func TestRecordLeak(t *testing.T) {
	t.Parallel()
	builds := [][]string{nil, {"-ldflags=-s"}, {"-gcflags=-N -l"}}
	if *recordBuilds {
		builds = append(builds, []string{"-buildmode=pie"}, []string{"-buildmode=pie", "-ldflags=-s"})
	}
	for _, flags := range builds {
		program := theRecorded(t)
		if flags != nil {
			var err error
			if program, err = goBuild(t.TempDir(), flags...); err != nil {
				t.Fatal(err)
			}
		}
		r := record(t, "-rate", "1", "--", program, "leak", "-x", "a b")
		if r.code != 3 || r.stdout != "[-x a b]\nfrom stdin\n" || !strings.HasPrefix(r.stderr, "on stderr\n") {
			t.Fatalf("%v: code %d, stdout %q, stderr %s", flags, r.code, r.stdout, r.stderr)
		}
		stacks := r.stacks(t, "inuse_space")
		c := "^leak .*_Cfunc_leak "
		if strings.Contains(strings.Join(flags, " "), "-s") {
			c = `^(?:program\+0x\w+ )+` // no names of C functions
		}
		if n := sum(stacks, c+`main\._Cfunc_leak main\.inlined main\.leaky main\.main runtime\.main runtime\.goexit$`); n != 1_000_000 {
			t.Errorf("%v: %d bytes leaked, want 1,000,000: %v", flags, n, stacks)
		}
		label := r.profile(t).Sample[0].Label["tenant"] // a program without DWARF does not say where they are
		if isStripped := strings.HasPrefix(c, "^("); isStripped != (len(label) == 0) || len(label) > 0 && (label[0] != "acme" || !strings.Contains(r.stderr, ", with the label empty= tenant=acme\n")) {
			t.Errorf("%v: the label %q in\n%s", flags, label, r.stderr)
		}
		if n := sum(r.stacks(t, "peak_space"), `main\.leaky main\.main`); n != 1_000_000 {
			t.Errorf("%v: %d bytes at the peak, want 1,000,000", flags, n)
		}
		if n := sum(stacks, `main\._cgo_cmalloc .*main\.asks main\.main`); n != 100_000 {
			t.Errorf("%v: %d bytes of C.malloc, want 100,000: %v", flags, n, stacks)
		}
		for _, want := range []string{
			`(?m)^  calls       [\d,]+ of malloc and its like, for [\d.]+ MiB; \d+ of free$`,
			`(?m)^  at most     1\.05 MiB in use, give or take 0 bytes: `,
			`(?m)^                 97\d KiB  program$`,
			`(?m)^                [\d.]+ KiB  C\.malloc, C\.CString, C\.CBytes$`,
			`(?m)^  Go itself   asked for about 195 KiB in about 120 blocks, by C\.malloc, C\.CString, C\.CBytes$`,
			`(?m)^              a call takes [\d.]+ .?s on a cheap\.Heap and [\d.]+ .?s through cgo, measured now by pairs of 1666 bytes`,
			`(?m)^  profile     go tool pprof \S+ \S+out\.pb\.gz$`,
		} {
			if !regexp.MustCompile(want).MatchString(r.stderr) {
				t.Errorf("%v: no %s in\n%s", flags, want, r.stderr)
			}
		}
	}
}

// TestRecordChildren records what a shell starts and becomes, and says what it could not record. "$0" is the program.
func TestRecordChildren(t *testing.T) {
	t.Parallel()
	out := t.TempDir() + "/"
	r := record(t, "-rate", "1", "-children", "-o", out, "sh", "-c", `"$0" leak first; env -i sleep 2; exec "$0" leak second`, theRecorded(t))
	if r.code != 3 || r.stdout != "[first]\nfrom stdin\n[second]\n" || !regexp.MustCompile(`has started sleep; it could not be recorded[;\n]`).MatchString(r.stderr) {
		t.Errorf("code %d, stdout %q, stderr %s", r.code, r.stdout, r.stderr)
	}
	for _, name := range []string{"program", "program-2"} {
		r.out = out + name + profileSuffix
		if n := sum(r.stacks(t, "inuse_space"), `main\.leaky main\.main`); n != 1_000_000 {
			t.Errorf("%s: %d bytes leaked, want 1,000,000", name, n)
		}
		if _, err := os.Stat(out + name + pageSuffix); err != nil {
			t.Error(err)
		}
	}
}

// TestRecordPprof has go tool pprof read the profile.
func TestRecordPprof(t *testing.T) {
	t.Parallel()
	program := theRecorded(t)
	r := record(t, "-rate", "1", program, "leak")
	text, err := exec.Command("go", "tool", "pprof", "-top", "-cum", program, r.out).CombinedOutput()
	if err != nil || !regexp.MustCompile(`97[67](\.\d+)?kB .*main\.leaky\n`).Match(text) {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestRecordTrace compares a trace with the calls of four threads.
func TestRecordTrace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "t.fht.gz")
	r := record(t, "-trace", file, theRecorded(t), "threads")
	if r.code != 0 {
		t.Fatal(r.stderr)
	}
	tr := readTrace(t, file)
	mallocs, frees := 0, 0
	slots := map[uint32]bool{}
	for _, op := range tr.Ops {
		if op.Kind == trace.Malloc && op.Size == 777 {
			mallocs++
			slots[op.Slot] = true
		}
		if op.Kind == trace.Free && slots[op.Slot] {
			frees++
		}
	}
	if mallocs != 400_000 || frees < 400_000 || tr.Threads < 5 {
		t.Errorf("%d mallocs and %d frees of %d threads, want 400,000 of 5", mallocs, frees, tr.Threads)
	}
	calls := regexp.MustCompile(`calls       ([\d,]+) of malloc`).FindStringSubmatch(r.stderr)
	if calls == nil || !strings.HasPrefix(calls[1], "400,") {
		t.Errorf("other counts in\n%s", r.stderr)
	}

	// The calls of Go code are replayed at the end.
	r = record(t, "-rate", "1", "-trace", file, theRecorded(t), "leak")
	for _, want := range []string{
		"\n  Go itself   asked for 195 KiB in 120 blocks, by ", "measured now by replaying them\n", "\n  trace       go run ./lab replay ", " by the trace, which has all calls; by library:\n",
	} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in\n%s", want, r.stderr)
		}
	}
}

// TestRecordEnds has programs that end and fork in other ways.
func TestRecordEnds(t *testing.T) {
	t.Parallel()
	program := theRecorded(t)
	for _, c := range []struct {
		mode string
		code int
	}{{"abort", 128 + int(syscall.SIGABRT)}, {"fork", 0}, {"closes", 0}, {"second", 0}} {
		r := record(t, "-rate", "1", program, c.mode)
		// Go turns abort into an exit with 2.
		if r.code != c.code && !(c.mode == "abort" && r.code == 2) {
			t.Errorf("%s: code %d, want %d: %s", c.mode, r.code, c.code, r.stderr)
		}
		if n := sum(r.stacks(t, "inuse_space"), `main\.leaky main\.main`); n != 1_000_000 {
			t.Errorf("%s: %d bytes leaked, want 1,000,000", c.mode, n)
		}
		if c.mode != "fork" {
			continue
		}
		if regexp.MustCompile(`calls       \d{3},\d{3} `).MatchString(r.stderr) {
			t.Errorf("what the child of a fork allocates is counted:\n%s", r.stderr)
		}
	}
}

// TestRecordC records programs in C. In the first one the address of malloc is that of a stub of
// the program; the second one has a malloc of its own.
func TestRecordC(t *testing.T) {
	t.Parallel()
	const first = `
#include <stdlib.h>
void *(*volatile allocate)(size_t) = malloc;
void *volatile kept;
int main(void) { kept = allocate(123456); kept = malloc(654321); return malloc == allocate ? 7 : 1; }
`
	const second = `
#include <stdlib.h>
static char memory[1 << 20], *next = memory;
void *malloc(size_t n) { void *p = next; next += (n + 15) / 16 * 16; return p; }
void free(void *p) {}
int main(void) { return malloc(1) < (void *)memory; }
`
	for _, c := range []struct {
		text  string
		flags []string
		code  int
		want  string
	}{
		{first, []string{"-no-pie", "-fno-pie"}, 7, "\n  at the end  760 KiB in use, by place:\n"},
		{first, []string{"-pie", "-fPIE"}, 7, "\n  at the end  760 KiB in use, by place:\n"},
		{second, nil, exitFailed, "cheap record: nothing was recorded: the program is linked with a malloc of its own\n"},
	} {
		program := filepath.Join(t.TempDir(), "program")
		compileC(t, program, c.text, c.flags...)
		r := record(t, "-rate", "1", program)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: code %d, no %q in\n%s", c.flags, r.code, c.want, r.stderr)
		}
	}
}

// TestRecordEnvironment looks at what the program and its children see.
func TestRecordEnvironment(t *testing.T) {
	t.Parallel()
	program := theRecorded(t)
	r := recordEnv(t, []string{"KEPT=kept"}, program, "environment")
	if r.stdout != "child kept\n" {
		t.Errorf("the program prints %q", r.stdout)
	}
	library, err := preload.Find("jemalloc")
	if err != nil {
		t.Log(err)
		return
	}
	r = recordEnv(t, []string{library.Env(), "KEPT=kept"}, program, "environment")
	if want := "has " + library.Env() + "\nchild " + library.Path + " kept\n"; r.stdout != want {
		t.Errorf("the program prints %q, want %q", r.stdout, want)
	}
	r = recordEnv(t, []string{library.Env()}, "-rate", "1", program, "leak")
	if n := sum(r.stacks(t, "inuse_space"), `main\.leaky main\.main`); n != 1_000_000 {
		t.Errorf("%d bytes leaked with jemalloc, want 1,000,000", n)
	}
}

// TestRecordOff has the library do nothing.
func TestRecordOff(t *testing.T) {
	t.Parallel()
	r := recordEnv(t, []string{"CHEAP_CMEM=off"}, theRecorded(t), "leak")
	if r.code != 3 || !strings.Contains(r.stderr, "cheap record: nothing was recorded: CHEAP_CMEM is off in the environment\n") {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
}

// TestRecordSignals sends signals to the command alone.
func TestRecordSignals(t *testing.T) {
	t.Parallel()
	program := theRecorded(t)
	for _, c := range []struct {
		mode   string
		signal syscall.Signal
		code   int
		stdout string
	}{
		{"wait", syscall.SIGTERM, 5, "ready\ngot terminated\n"},
		{"sleep", syscall.SIGTERM, 128 + 15, "ready\n"},
		{"sleep", syscall.SIGINT, 128 + 2, "ready\n"},
		{"sleep", syscall.SIGHUP, 128 + 1, "ready\n"},
	} {
		if signal.Ignored(c.signal) {
			continue // as nohup has it: then the program ignores it as well
		}
		command, out := recordCommandLine(t, nil, "-rate", "1", program, c.mode)
		var stdout, stderr lineWriter
		command.Stdout, command.Stderr = &stdout, &stderr
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
		testcall.Must(t, command.Start())
		stdout.waitFor(t, "ready\n")
		command.Process.Signal(c.signal)
		command.Wait()
		r := &recordRun{out: out, stderr: stderr.String()}
		if code := command.ProcessState.ExitCode(); code != c.code || stdout.String() != c.stdout {
			t.Errorf("%s, %v: code %d, want %d, stdout %q, stderr %s", c.mode, c.signal, code, c.code, &stdout, &stderr)
		}
		if n := sum(r.stacks(t, "inuse_space"), `main\.leaky main\.main`); n != 1_000_000 {
			t.Errorf("%s, %v: %d bytes leaked, want 1,000,000", c.mode, c.signal, n)
		}
	}
}

// TestRecordHTTP reads the figures while the program runs.
func TestRecordHTTP(t *testing.T) {
	t.Parallel()
	command, _ := recordCommandLine(t, nil, "-rate", "1", "-http", "localhost:0", theRecorded(t), "sleep")
	var stdout, stderr lineWriter
	command.Stdout, command.Stderr = &stdout, &stderr
	testcall.Must(t, command.Start())
	address := stderr.waitFor(t, `cheap record: the figures are at (http://\S+/)\n`)[1]
	stdout.waitFor(t, "ready\n")
	get := func(path string) []byte {
		answer, err := http.Get(address + path)
		testcall.Must(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v, %s", path, answer.Status, err, body)
		}
		return body
	}
	page := string(get(""))
	for _, want := range []string{"<title>program: the C heap</title>", "main.leaky", "The program runs: the end is the moment at which this page was made."} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page\n%s", want, page)
		}
	}
	p, err := profile.ParseData(get("profile"))
	if err != nil || len(p.Sample) == 0 {
		t.Errorf("the profile: %v", err)
	}
	command.Process.Signal(syscall.SIGTERM)
	command.Wait()
}

// TestRecordHammer reads the figures while the program allocates in many ways. Each address of the
// profile must be in a mapping.
func TestRecordHammer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "t.fht.gz")
	command, out := recordCommandLine(t, nil, "-rate", "2048", "-trace", file, "-http", "localhost:0", theRecorded(t), "hammer")
	var stderr lineWriter
	command.Stderr = &stderr
	testcall.Must(t, command.Start())
	address := stderr.waitFor(t, `cheap record: the figures are at (http://\S+/)\n`)[1]
	reads := 0
	for ; ; reads++ {
		answer, err := http.Get(address + []string{"", "profile"}[reads%2])
		if err != nil {
			break // it has ended
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
			t.Fatal(answer.Status)
		}
	}
	if err := command.Wait(); err != nil || reads < 5 {
		t.Fatalf("%v after %d reads: %s", err, reads, &stderr)
	}
	f, err := os.Open(out)
	testcall.Must(t, err)
	defer f.Close()
	p, err := profile.Parse(f)
	testcall.Must(t, err)
	for _, l := range p.Location {
		if l.Address != 0 && (l.Mapping == nil || l.Address < l.Mapping.Start || l.Address >= l.Mapping.Limit) {
			t.Errorf("the address %#x is in no mapping", l.Address)
		}
	}
	n := map[trace.Kind]int{}
	for _, op := range readTrace(t, file).Ops {
		if op.Kind != trace.Malloc || op.Size == 777 {
			n[op.Kind]++
		}
	}
	if n[trace.Malloc] != 5*8*4000 || n[trace.Realloc] < 8*3000 {
		t.Errorf("the trace has %v, want 160,000 mallocs and 24,000 reallocs", n)
	}
	if regexp.MustCompile(`(?m)^  lost `).MatchString(stderr.String()) {
		t.Errorf("samples were lost:\n%s", &stderr)
	}
}

// TestRecordMistakes gives wrong arguments, and programs that cannot be recorded.
func TestRecordMistakes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program := theRecorded(t)
	idle := filepath.Join(folder, "idle") // no other test runs it
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(idle, text, 0o777)
	}
	testcall.Must(t, err)
	static := filepath.Join(folder, "static")
	build := exec.Command("go", "build", "-o", static, ".")
	build.Dir = filepath.Join(folder, "src")
	for name, text := range map[string]string{
		"src/go.mod": "module static\n", "src/main.go": "package main\n\nfunc main() {}\n", "script": "#!/bin/sh\n", "text": "text\n", "$ORIGIN/text": "",
	} {
		os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o777)
		testcall.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o777))
	}
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, c := range []struct {
		env  string
		args []string
		want string
	}{
		{"", nil, "no program is given"},
		{"", []string{"-pid", "0"}, "0 is no number of a process"},
		{"", []string{"-what", program}, "flag provided but not defined: -what; the flags are "},
		{"", []string{"-rate", "0", program}, "-rate: 0 is too little"},
		{"", []string{"-o", "", program}, "-o: name a file"},
		{"", []string{"-o", folder, program}, "-o: "},
		{"", []string{"-trace", folder + "/no/file", program}, "-trace: "},
		{"", []string{"-trace", folder + "/same", "-o", folder + "/src/../same", program}, "-o and -trace name the same file"},
		{"", []string{"-trace", folder + "/text", "-o", folder + "/text", program}, "-o and -trace name the same file"},
		{"", []string{"-o", idle, idle}, "is the program; name another file"},
		{"", []string{"-http", "nowhere", program}, "-http: "},
		{"", []string{"-o", folder + "/x.pb.gz", "go", "test"}, "may start several programs; name a folder, such as "},
		{"", []string{"-o", folder + "/", "go", "test", "-exec=time", "."}, "-exec: this command gives go test one"},
		{"", []string{"-o", folder + "/", "-trace", folder + "/trace", program}, "-trace and -http are for one program, whose profile is a file"},
		{"", []string{"-o", folder + "/text/", program}, "-o: "},
		{"", []string{"-o", folder + "/new/", "-library", folder + "/none.so", program}, "-library: "},
		{"", []string{"-o", folder + "/new/", "-library", folder + "/none.so", "go", "test", "."}, "-library: "},
		{"", []string{"no-such-program"}, "give the path of a program"},
		{"", []string{folder + "/none"}, "give the path of a program"},
		{"", []string{folder}, "give the path of a program"},
		{"", []string{folder + "/script"}, "is a script"},
		{"", []string{folder + "/text"}, "is no ELF file"},
		{"", []string{static}, "is linked statically"},
		{"TMPDIR=" + folder + "/$ORIGIN", []string{program}, "name another folder"},
		{"", []string{"-build", folder + "/l", program}, "-build compiles the library and runs nothing"},
		{"", []string{"-library", folder + "/none.so", program}, "/none.so: no such file"},
		{"", []string{"-library", program, program}, "was not made with cheap record -build"},
		{"", []string{"-library", folder + "/text", program}, "was not made with cheap record -build"},
		{"", []string{"-library", folder + "/$ORIGIN/text", program}, "name another folder"},
		{"CC=no-such-compiler -O3", []string{program}, "the C compiler no-such-compiler was not found"},
	} {
		r := recordEnv(t, []string{c.env}, c.args...)
		if r.code != exitUsage || !strings.HasPrefix(r.stderr, "cheap record: ") || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("cheap record %q: code %d, want %q in %q", c.args, r.code, c.want, r.stderr)
		}
	}
	r := recordEnv(t, []string{"CC=false"}, program)
	if r.code != exitFailed || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("a compiler that fails: code %d, %q", r.code, r.stderr)
	}
}

// TestRecordHelp has the help, and no program.
func TestRecordHelp(t *testing.T) {
	for _, args := range [][]string{{"record", "-h"}, {"help", "record"}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitOK || stderr.Len() > 0 || !strings.Contains(stdout.String(), "cheap record -trace server.fht.gz ./server") {
			t.Errorf("%v: code %d, %s%s", args, code, &stdout, &stderr)
		}
		for line := range strings.Lines(stdout.String()) {
			if len(line) > 121 {
				t.Errorf("a line of %d columns: %s", len(line), line)
			}
		}
	}
}

// TestWriteFile removes the half of a file, and leaves a device.
func TestWriteFile(t *testing.T) {
	name, full := filepath.Join(t.TempDir(), "page.html"), errors.New("full")
	err := writeFile(name, func(w io.Writer) error { _, err := w.Write([]byte("half")); return errors.Join(err, full) })
	if _, left := os.Lstat(name); !errors.Is(err, full) || !errors.Is(left, fs.ErrNotExist) {
		t.Errorf("%v, and the file: %v", err, left)
	}
	if err := writeFile("/dev/full", func(w io.Writer) error { _, err := w.Write([]byte("half")); return err }); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("/dev/full: %v", err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Error(err)
	}
}
