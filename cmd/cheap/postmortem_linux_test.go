//go:build cgo && (amd64 || arm64)

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/inspect/blackbox"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// killed is what the command prints of the program that was killed.
var killed = []string{
	`^server, process \d+, go1\.\d+\S* linux/\w+\n  started  20`,
	`\n  ended    without Stop: .*\n`,
	`\n\n.*\S+ MiB.*\n  see `,
	`\n\ncontainer\n  \S+ MiB of 100 MiB charged`,
	`\n\nresident, \S+ MiB in all\n +\S+ MiB +\d\d%  C, in use\n`,
	`\n\nC in use, by library\n +\S+ MiB  server \(1,\d+\)\n`,
	`\n\nC in use, by stack\n +\S+ MiB  server\n +render\n +main\.visit main\.go:\d+\n +main\.main main\.go:\d+\n`,
}

// TestPostmortem has the kernel kill a program that leaks, in a cgroup of its own, and prints what the
// program has written before. Then the program runs again, and says what it has found.
func TestPostmortem(t *testing.T) {
	t.Parallel()
	const limit = 100 << 20
	enter, err := testchild.Cgroup(t, limit)
	if err != nil {
		t.Logf("no cgroup can be made here: %v", err)
		return
	}
	program := filepath.Join(t.TempDir(), "server")
	testcall.Must(t, testchild.Build(program, nil, "./testdata/postmortem"))
	box := filepath.Join(t.TempDir(), "box")
	start := func(args ...string) (said string, err error) {
		cmd := exec.CommandContext(untilDeadline(t), program, append([]string{"-box", box}, args...)...)
		enter(cmd)
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	// 88 MiB and what the program takes besides, some 6, are more than 90 MiB, and less than 100.
	said, err := start("-wait", "88")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the program was not killed: %v: %s", err, said)
	}
	match(t, said, `^near: \d\S* MiB of 100 MiB charged.*: C, in use \S+ MiB, .*library server \S+ MiB; C in use was allocated by main\.visit main\.go:\d+; .*\n$`)
	match(t, postmortem(t, "", box), append(killed, `\n +the kernel has killed 1 process of its cgroup for want of memory since the record\n`)...)

	if said, err = start("stop"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	match(t, said, `^before: 1 \[render main\.visit main\.go:\d+ main\.main main\.go:\d+\]\n$`)
	match(t, postmortem(t, box+".previous is the box of a process before that has ended without Stop\n", box), `\n  ended    in order: it has called Stop\n`)
	match(t, postmortem(t, "", box+".previous"), killed...)
	var report blackbox.Report
	testcall.Must(t, json.Unmarshal([]byte(postmortem(t, "", "-json", box+".previous")), &report))
	if r := report.Last; report.State != blackbox.Ended || report.KilledSince != 1 || r.Container.Limit != limit || r.Libraries[0].Name != "server" || r.Libraries[0].Bytes < limit/2 {
		t.Errorf("the report is %+v, %+v", report, r)
	}
}

// TestPostmortemDocument compares docs/tools.md with the program that it names, and with the form of what is
// printed today.
func TestPostmortemDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/tools.md")
	testcall.Must(t, err)
	_, section, _ := strings.Cut(string(text), "\n## cheap postmortem\n")
	section, _, _ = strings.Cut(section, "\n## ")
	source, err := os.ReadFile("testdata/postmortem/main.go")
	testcall.Must(t, err)
	blocks := regexp.MustCompile("(?ms)^```\\w+\n(.*?)^```$").FindAllStringSubmatch(section, -1)
	if len(blocks) != 4 {
		t.Fatalf("the section has %d blocks", len(blocks))
	}
	if o := `blackbox.Options{File: "box"}`; !strings.Contains(blocks[0][1], o) || !strings.Contains(string(source), `blackbox.Options{File: *file}`) {
		t.Errorf("the program does not start the box as in\n%s", blocks[0][1])
	}
	match(t, blocks[1][1], `^cheap: the limit of the container is near: \d\S* MiB of 100 MiB charged: C, in use \S+ MiB, .*library server \S+ MiB; .*main\.visit.*\n$`)
	match(t, blocks[3][1], killed...)
	for _, call := range regexp.MustCompile(`main\.(\w+) main\.go:(\d+)`).FindAllStringSubmatch(blocks[3][1], -1) {
		n, _ := strconv.Atoi(call[2])
		if lines := strings.Split(string(source), "\n"); n > len(lines) || !strings.Contains(lines[n-1], map[string]string{"visit": "C.render(", "main": "visit()"}[call[1]]) {
			t.Errorf("line %d of the program is not that of %s", n, call[1])
		}
	}
}

// match fails the test where a text does not match.
func match(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

// postmortem returns what the command prints. What it says on stderr ends with hint.
func postmortem(t *testing.T, hint string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append([]string{"postmortem"}, args...), nil, &stdout, &stderr); code != exitOK {
		t.Fatalf("cheap postmortem %q: code %d, %s", args, code, &stderr)
	}
	if !strings.HasSuffix(stderr.String(), hint) || (hint == "") != (stderr.Len() == 0) {
		t.Errorf("cheap postmortem %q says %s, want %s", args, &stderr, hint)
	}
	return stdout.String()
}
