package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// build builds the program. The test binary has no names of C functions.
func build(t *testing.T) string {
	t.Helper()
	if os.Getenv("CGO_ENABLED") == "0" {
		t.Skip("cgo is off")
	}
	name := filepath.Join(t.TempDir(), "where")
	if out, err := exec.Command("go", "build", "-o", name, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// start starts the program, and returns the address of its page.
func start(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, append([]string{"-addr=localhost:0"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	testcall.Must(t, err)
	testcall.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, &stderr)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return strings.TrimSpace(line)
}

func get(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get(address)
	testcall.Must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, answer.Status, err)
	}
	return string(body)
}

// watch waits until the program has looked at its stacks so often, which it does when it is asked
// and an interval has ended, and done says that it is enough. It returns what the program says then.
func watch(t *testing.T, page string, least, most int, done func(text string) bool) (text string) {
	t.Helper()
	for looks, last := 0, (time.Time{}); looks < most; {
		var figures pagejson.GrowthFigures
		testcall.Must(t, json.Unmarshal([]byte(get(t, page+"growth.json")), &figures))
		if figures.Time.Equal(last) {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		last = figures.Time
		looks++
		if text = get(t, page+"growth.txt"); looks >= least && done(text) {
			break
		}
	}
	return text
}

// intervals are those in each of which a stack has to grow, which are one second long here.
const intervals = 6

var quick = []string{"-growth=1s", "-rate=50"}

// figures are what differs from run to run.
var (
	folders = regexp.MustCompile(`[^\s]*/`)
	figures = regexp.MustCompile(`(?:>|\b)(?:\d+m\d+s|\d[\d.,]*(?:kB|MB|GB|B|%|s|ms| [KMG]iB)?)`)
	places  = regexp.MustCompile(`\bguestbook\.go:\d+`)
	space   = regexp.MustCompile(`[\s-]+`)
)

// shape returns a line without figures, but for those of lines in guestbook.go.
func shape(line string) string {
	place := places.FindString(line)
	line = figures.ReplaceAllString(folders.ReplaceAllString(line, ""), "#")
	return strings.TrimSpace(space.ReplaceAllString(line, " ")) + place
}

// TestDocument runs the commands of README.md, and looks for the lines that it shows in what they print.
func TestDocument(t *testing.T) {
	document, err := os.ReadFile("README.md")
	testcall.Must(t, err)
	page := start(t, build(t), quick...)
	// A look at what the program allocates when it starts is no growth.
	watch(t, page, intervals+1, 3*intervals, func(text string) bool { return strings.Contains(text, "allocated by") })
	host := strings.TrimSuffix(strings.TrimPrefix(page, "http://"), "/debug/cheap/")
	output, commands := "", 0
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(document), -1) {
		switch text := m[2]; m[1] {
		case "sh":
			output = ""
			for line := range strings.Lines(text) {
				if strings.Contains(line, "localhost:6060") {
					commands++
					output += shell(t, strings.ReplaceAll(line, "localhost:6060", host))
				}
			}
		case "go":
			source := ""
			for _, name := range []string{"guestbook.go", "run.go"} {
				b, err := os.ReadFile(name)
				testcall.Must(t, err)
				source += string(b)
			}
			if !strings.Contains(source, text) {
				t.Errorf("the program does not have\n%s", text)
			}
		case "text":
			printed := map[string]bool{}
			for line := range strings.Lines(output) {
				printed[shape(line)] = true
			}
			for line := range strings.Lines(text) {
				if !printed[shape(line)] && strings.TrimSpace(line) != "..." {
					t.Errorf("the commands do not print %q\nas in %q but\n%s", shape(line), line, output)
					break
				}
			}
		}
	}
	if commands < 3 {
		t.Errorf("%d commands", commands)
	}
}

func shell(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", "set -o pipefail; "+line)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v\n%s", line, err, &stderr)
	}
	return string(out)
}

// TestFix has no stack that grows.
func TestFix(t *testing.T) {
	page := start(t, build(t), append(quick, "-fix")...)
	// At first some stacks grow: they fill what is kept.
	const none = "No stack has grown in each of the last 6 intervals of 1s.\n"
	if text := watch(t, page, intervals+3, 3*intervals, func(text string) bool { return text == none }); text != none {
		t.Errorf("%s", text)
	}
	var live float64
	text := get(t, page+"cmem.txt")
	if _, err := fmt.Sscanf(strings.SplitN(text, "\n", 3)[1], " in use %f", &live); err != nil || live > 32<<20 {
		t.Errorf("%v: %s", err, text)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-seconds=-1"}, {"x"}, {"-port=1"}, {"-rate=0"}, {"-growth=1ms"}} {
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
