package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestTools runs the sessions of docs/tools.md, and the one of README.md, with this program, or its module,
// for a shorter time and with more requests, and looks for the lines that the pages show in what they print.
func TestTools(t *testing.T) {
	program := build(t)
	folder := filepath.Dir(program)
	tools := t.TempDir()
	c := exec.Command("go", "build", "-o", tools, "./cmd/cheap", "./lab", "./vet/cmd/cheapvet")
	c.Dir = filepath.Join("..", "..")
	c.Env = append(os.Environ(), "GOWORK=") // the workspace has the modules of the commands
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	page := start(t, program, quick...)
	host := strings.TrimSuffix(strings.TrimPrefix(page, "http://"), "/debug/cheap/")
	text, err := os.ReadFile("../../docs/tools.md")
	testcall.Must(t, err)
	readme, err := os.ReadFile("../../README.md")
	testcall.Must(t, err)
	blocks := regexp.MustCompile("(?ms)^```text\n(.*?)^```$")
	// Which places have grown, and since when, depends on how long it runs.
	grew := regexp.MustCompile(`(, grew .*|( from (the start|(about )?\S+ s) on)?(, and less at \d+ other places?)?)\s*$`)
	unit := func(line string) string { // whatever it is, and without the marks of a busy machine
		line = grew.ReplaceAllString(line, "")
		return strings.NewReplacer("# µs", "# ns", "# KiB", "# MiB", "!", "", "~", "").Replace(shape(line))
	}
	// What cheap top prints depends on how long the program has run, but for how its lines begin. The verdict
	// and the legend are sentences, whose lines begin anywhere.
	top := regexp.MustCompile(`^(guestbook|Resident|GH*C+|pace:|C heap:|SUSPECT|main\.\(\*guestbook\)\.find guestbook\.go:\d+:|LIBRARY|where) *.*`)
	commands := 0
	for _, title := range []string{"cheap record", "cheap top", "lab replay", "cheapvet"} {
		_, section, ok := strings.Cut(string(text), "\n## "+title+"\n")
		if !ok {
			t.Fatalf("docs/tools.md has no part about %s", title)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		if title == "cheap record" { // README.md calls the program server
			section += strings.ReplaceAll(blocks.FindString(string(readme)), "server", "where")
		}
		printed := map[string]bool{}
		output := ""
		session := func(command string) {
			commands++
			command = strings.NewReplacer("localhost:6060", host, "go run ./lab", "lab").Replace(command)
			if strings.HasPrefix(command, "cheap record ") {
				command += " -addr=localhost:0 -rate=50 -seconds=5"
			}
			testwait.Until(t, "suspects in cheap top", func() bool {
				c := exec.Command("bash", "-c", command)
				if title != "cheapvet" {
					c.Dir = folder // that of the program; cheapvet needs the module
				}
				c.Env = append(os.Environ(), "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"), "PPROF_TMPDIR="+tools)
				out, err := c.CombinedOutput()
				if err != nil && (title != "cheapvet" || c.ProcessState.ExitCode() != 1) { // it has findings
					t.Fatalf("%s: %v\n%s", command, err, out)
				}
				output = string(out)
				return title != "cheap top" || !strings.Contains(output, "None so far")
			})
			clear(printed)
			for line := range strings.Lines(output) {
				printed[unit(line)] = true
			}
		}
		for _, m := range blocks.FindAllStringSubmatch(section, -1) {
			for line := range strings.Lines(m[1]) {
				line = strings.TrimSpace(line)
				switch command, isCommand := strings.CutPrefix(line, "$ "); {
				case isCommand:
					session(command)
				case strings.HasPrefix(strings.TrimPrefix(line, "go run ./"), title+" -"):
					session(line)
				case title == "cheap top":
					if begins := top.FindStringSubmatch(line); begins != nil && !strings.Contains("\n"+output, "\n"+strings.TrimRight(begins[1], "HC")) {
						t.Errorf("no line begins as %q does:\n%s", line, output)
					}
				case line != "..." && !printed[unit(line)]:
					t.Errorf("%q is not printed, but\n%s", unit(line), output)
				}
			}
		}
	}
	if commands != 5 {
		t.Errorf("the pages have %d commands with this program, want 5", commands)
	}
}
