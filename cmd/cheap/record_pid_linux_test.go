//go:build cgo && linux && amd64

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// TestRecordPid attaches to a program that was not started for it. A leak is named by its line.
func TestRecordPid(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "attached")
	testcall.Must(t, testchild.Build(program, nil, "./testdata/attached"))
	ways := []string{"signal", "time", "end", "exec"}
	if _, err := exec.Command("env", "LD_PRELOAD=libjemalloc.so.2", "true").CombinedOutput(); err == nil {
		ways = append(ways, "jemalloc")
	}
	if _, err := exec.LookPath("musl-gcc"); err == nil {
		ways = append(ways, "musl")
	}
	folder := t.TempDir() // a file system of its own in a container, which ends with the program
	container := []string{"-m", "sh", "-c", `mount -t tmpfs none "$0" && cp "$1" "$0" && exec "$0/attached" leak`, folder, program}
	if exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", folder).Run() == nil { // root may
		ways = append(ways, "end of a container")
	}
	for _, by := range ways {
		var env []string
		program, before := program, `the [45]\.\d+ MiB that C had in use before have`
		if by == "musl" { // which names functions of C only if there are tables
			env = []string{"CC=musl-gcc", "CGO_ENABLED=1"}
			program, before = filepath.Join(t.TempDir(), "attached"), `what C had in use before has`
			testcall.Must(t, testchild.Build(program, env, "-ldflags=-extldflags=-Wl,--eh-frame-hdr", "./testdata/attached"))
		}
		p := exec.CommandContext(untilDeadline(t), program, "leak")
		if by == "jemalloc" {
			p.Env = append(os.Environ(), "LD_PRELOAD=libjemalloc.so.2")
		} else if by == "end of a container" {
			p = exec.CommandContext(untilDeadline(t), "unshare", container...)
		}
		input, _ := p.StdinPipe()
		out, _ := p.StdoutPipe()
		output := bufio.NewReader(out)
		testcall.Must(t, p.Start())
		says := func(from *bufio.Reader, want string) {
			t.Helper()
			if line, err := from.ReadString('\n'); !strings.HasPrefix(line, want) {
				t.Fatal(line, err)
			}
		}
		says(output, "ready\n")
		args := []string{"-rate", "1", "-pid", fmt.Sprint(p.Process.Pid)}
		if by == "time" {
			args = append(args, "-for", "3s")
		}
		command, profile := recordCommandLine(t, env, args...)
		text, _ := command.StderrPipe()
		stderr := bufio.NewReader(text)
		testcall.Must(t, command.Start())
		says(stderr, fmt.Sprintf("cheap record: counts what process %d, attached, allocates from now on, ", p.Process.Pid))
		fmt.Fprintln(input, "leak")
		says(output, "leaked\n")
		switch by {
		case "signal", "musl", "jemalloc":
			command.Process.Signal(os.Interrupt)
		case "end", "end of a container":
			p.Process.Signal(syscall.SIGKILL)
		case "exec":
			fmt.Fprintln(input, "exec")
			says(output, "ready\n")
		}
		report, _ := io.ReadAll(stderr)
		if err := command.Wait(); err != nil {
			t.Fatalf("%s: %v\n%s", by, err, report)
		}
		r := &recordRun{stderr: string(report), out: profile}
		stacks := r.stacks(t, "inuse_space")
		if n := sum(stacks, `^planted .*main\._Cfunc_planted main\.leak main\.main runtime\.main runtime\.goexit$`); n != 1_000_000 {
			t.Errorf("%s: %d bytes leaked, want 1,000,000: %v", by, n, stacks)
		}
		for stack, n := range stacks {
			if n < 0 {
				t.Errorf("%s: %d bytes in use of %s", by, n, stack)
			}
		}
		for _, want := range []string{
			`^cheap record: the C heap of attached\n  counted     since \d\d:\d\d:\d\d, for [\d.]+m?s; ` + before + ` no maker, and calls of free for (?:them|it) count\n`,
			`\n  not seen    calls by `,
			`\n  mapped      +16\.0 MiB  attached, without malloc; 16\.0 MiB at the end\n`,
			`\n  calls       [\d,]+ of malloc and its like, for [\d.]+ [KM]iB; 1,0\d\d of free\n`,
			map[bool]string{true: `\n  (?:verdict|not all) +the program became /\S*/attached, by exec; what came then is not recorded\n`}[by == "exec"],
			`, by planted\n`,
		} {
			if !regexp.MustCompile(want).Match(report) {
				t.Errorf("%s: no %s in\n%s", by, want, report)
			}
		}
		if strings.Contains(string(report), "by jemalloc, without malloc") {
			t.Errorf("what malloc maps counts twice: %s", report)
		}
		input.Close()
		rest, _ := io.ReadAll(output)
		if err := p.Wait(); !strings.HasPrefix(by, "end") && (err != nil || string(rest) != "bad 0 interrupted 0\n") {
			t.Errorf("%s: %v: %s", by, err, rest)
		}
	}
	showPid(t, program)
}

// showPid has cheap top attach to the program, and ends that command. The program goes on.
func showPid(t *testing.T, program string) {
	p := exec.CommandContext(untilDeadline(t), program, "leak")
	input, _ := p.StdinPipe()
	var output, screens lineWriter
	p.Stdout = &output
	testcall.Must(t, p.Start())
	output.waitFor(t, "ready\n")
	command := exec.CommandContext(untilDeadline(t), "cheap", "top", "-every", "100ms", "-pid", fmt.Sprint(p.Process.Pid))
	command.Stdout, command.Stderr = &screens, &screens
	testcall.Must(t, command.Start())
	screens.waitFor(t, `\n  calls       0 of malloc`)
	fmt.Fprintln(input, "leak")
	screens.waitFor(t, `(?s)(\n  calls       1,0\d\d of malloc and its like, .*){2}`)
	command.Process.Signal(os.Interrupt)
	if err := command.Wait(); err != nil || strings.Contains(screens.String(), "-record.pb.gz") {
		t.Errorf("%v: %s", err, &screens)
	}
	input.Close()
	if err := p.Wait(); err != nil {
		t.Error(err, &output)
	}
}
