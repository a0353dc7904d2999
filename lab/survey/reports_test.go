package main

import (
	"bytes"
	"flag"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

var reports = flag.String("reports", "", "run the programs of the reports whose names contain this `text`, or all; modules are downloaded, and C libraries needed")

var (
	fenced  = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	digits  = regexp.MustCompile(`[0-9]+`)
	version = regexp.MustCompile("`([^`\\s]+@v[^`\\s]+)`")
)

// blocksOf returns the first code block of each language of a report.
func blocksOf(text string) map[string]string {
	blocks := map[string]string{}
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		if blocks[m[1]] == "" {
			blocks[m[1]] = m[2]
		}
	}
	return blocks
}

// TestReports looks at the form of the reports. With -reports it runs their programs, which must fail
// because memory grows, and pass with the patch.
func TestReports(t *testing.T) {
	names, err := filepath.Glob("reports/*.md")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d reports, %v; want ten", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".md"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			testcall.Must(t, err)
			blocks := blocksOf(string(text))
			if !bytes.HasPrefix(text, []byte("# ")) || !version.Match(text) || blocks["diff"] == "" || blocks["text"] == "" {
				t.Error("want a title, a module with its version, what the program says as text, and a diff")
			}
			program, err := format.Source([]byte(blocks["go"]))
			if err != nil || string(program) != blocks["go"] {
				t.Errorf("the program is not formatted: %v", err)
			}
			if *reports == "" || *reports != "all" && !strings.Contains(name, *reports) {
				return
			}
			out := runReport(t, string(text), blocks["diff"], program)
			t.Logf("%s", out)
			// The text has lines of what the program says. Numbers depend on the machine.
			for line := range strings.Lines(blocks["text"]) {
				if line = strings.TrimSpace(line); !strings.Contains(withoutNumbers(out), withoutNumbers(line)) {
					t.Errorf("it does not say %q", line)
				}
			}
		})
	}
}

func withoutNumbers(text string) string { return digits.ReplaceAllString(text, "N") }

// runReport runs the program of a report as a test, with the module as it is, which must fail, and with
// the patch, which must not. It returns what the failed test prints.
func runReport(t *testing.T, text, patch string, program []byte) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	testcall.Must(t, err)
	dir := t.TempDir()
	testcall.Must(t, os.WriteFile(filepath.Join(dir, "report_test.go"), program, 0o666))
	command := func(fails bool, args ...string) string {
		c := exec.Command("go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := c.CombinedOutput()
		if (err != nil) != fails {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	command(false, "mod", "init", "example.com/report")
	edit := []string{"mod", "edit"}
	for _, in := range []string{"", "/cmem", "/inspect"} {
		path := "github.com/cheapgo/cheap" + in
		edit = append(edit, "-require="+path+"@v0.0.0", "-replace="+path+"="+root+in)
	}
	for _, m := range version.FindAllStringSubmatch(text, -1) {
		edit = append(edit, "-require="+m[1])
	}
	command(false, edit...)
	command(false, "mod", "tidy")
	out := command(true, "test", "-count=1", ".")

	module, _, _ := strings.Cut(version.FindStringSubmatch(text)[1], "@")
	patched := t.TempDir()
	original := strings.TrimSpace(command(false, "list", "-m", "-f={{.Dir}}", module))
	testcall.Must(t, os.CopyFS(patched, os.DirFS(original)))
	if name := filepath.Join(patched, "go.mod"); !exists(name) {
		testcall.Must(t, os.WriteFile(name, []byte("module "+module+"\n"), 0o666))
	}
	apply(t, patched, patch)
	command(false, "mod", "edit", "-replace="+module+"="+patched)
	command(false, "test", "-count=1", ".")
	return out
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// apply applies a patch. The header of a part has no line numbers, but may have a line above it, and
// lines may be left out between the parts.
func apply(t *testing.T, dir, patch string) {
	t.Helper()
	var name, text string
	at := 0
	write := func() {
		if name != "" {
			testcall.Must(t, os.WriteFile(name, []byte(text), 0o666))
		}
	}
	var old, changed string
	replace := func() {
		if old == "" && changed == "" {
			return
		}
		i := strings.Index(text[at:], old)
		if i < 0 {
			t.Fatalf("%s does not have, behind byte %d,\n%s", name, at, old)
		}
		text = text[:at+i] + changed + text[at+i+len(old):]
		at += i + len(changed)
		old, changed = "", ""
	}
	for line := range strings.Lines(patch) {
		if file, ok := strings.CutPrefix(line, "+++ b/"); ok {
			write()
			name, at = filepath.Join(dir, strings.TrimSpace(file)), 0
			b, err := os.ReadFile(name)
			testcall.Must(t, err)
			text = string(b)
			continue
		}
		switch {
		case strings.HasPrefix(line, "--- "):
			replace()
		case strings.HasPrefix(line, "@@"):
			replace()
			if above := strings.TrimSpace(strings.TrimPrefix(line, "@@")); above != "" {
				i := strings.Index(text, above)
				if i < 0 {
					t.Fatalf("%s does not have %q", name, above)
				}
				at = i + len(above)
			}
		case line == "\n":
			old, changed = old+line, changed+line
		case line[0] == '-':
			old += line[1:]
		case line[0] == '+':
			changed += line[1:]
		default:
			old, changed = old+line[1:], changed+line[1:]
		}
	}
	replace()
	write()
}
