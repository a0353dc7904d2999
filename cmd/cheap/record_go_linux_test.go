//go:build cgo && (amd64 || arm64)

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// goFiles are a module with a package that uses C, and one that does not.
var goFiles = map[string]string{
	"go.mod": "module example\n\ngo 1.26\n",
	"keeps/keeps.go": `package keeps

// #include <stdlib.h>
import "C"

import "unsafe"

var kept []unsafe.Pointer

func Keep() {
	for range 100 {
		kept = append(kept, C.malloc(10_000))
	}
}
`,
	"keeps/keeps_test.go":   "package keeps\n\nimport \"testing\"\n\nfunc TestKeep(t *testing.T) { Keep() }\n",
	"again/keeps/x_test.go": "package keeps\n\nimport (\n\t\"testing\"\n\n\t\"example/keeps\"\n)\n\nfunc TestKeep(t *testing.T) { keeps.Keep(); keeps.Keep() }\n",
	"beside/x_test.go": `package beside

import (
	"os"
	"testing"
)

func TestBeside(t *testing.T) {
	if v, ok := os.LookupEnv("CHEAP_RECORD_REPORTS"); ok {
		t.Error("the environment has CHEAP_RECORD_REPORTS: ", v)
	}
	for name, text := range map[string]string{"other.txt": "of another run", "other.pb.gz": ""} {
		if err := os.WriteFile("../profiles/"+name, []byte(text), 0o666); err != nil {
			t.Error(err)
		}
	}
}
`,
	"plain/plain_test.go":     "package plain\n\nimport \"testing\"\n\nfunc TestPlain(t *testing.T) {}\n",
	"program/main.go":         "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\n\t\"example/keeps\"\n)\n\nfunc main() { keeps.Keep(); fmt.Println(os.Args[1:]); os.Exit(7) }\n",
	"failing/failing_test.go": "package failing\n\nimport \"testing\"\n\nfunc TestFailing(t *testing.T) { t.Error(\"as it should\") }\n",
}

// recordGoIn runs cheap record in a module, with a folder for the profiles.
func recordGoIn(t *testing.T, module string, args ...string) (r *recordRun, names []string) {
	t.Helper()
	preloaded, err := library()
	testcall.Must(t, err)
	command, _ := recordCommandLine(t, []string{"GOWORK=off", "GOFLAGS="},
		append([]string{"-rate=1", "-library=" + preloaded, "-o=" + module + "/profiles/", "--"}, args...)...)
	command.Dir = module
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	_ = command.Run() // the exit code says more
	nothingShared(t, command)
	entries, err := os.ReadDir(module + "/profiles")
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	testcall.Must(t, os.Rename(module+"/profiles", t.TempDir()+"/profiles"))
	return &recordRun{stdout.String(), stderr.String(), command.ProcessState.ExitCode(), ""}, names
}

// TestRecordGo records what go test and go run start: one profile and one report for each program, and a report
// for one without C, which runs. The exit code is that of the go command.
func TestRecordGo(t *testing.T) {
	module := t.TempDir()
	for name, text := range goFiles {
		name = filepath.Join(module, name)
		testcall.Must(t, os.MkdirAll(filepath.Dir(name), 0o777))
		testcall.Must(t, os.WriteFile(name, []byte(text), 0o666))
	}
	r, names := recordGoIn(t, module, "go", "test", "./keeps", "./again/...", "./plain")
	want := []string{"keeps.test-2.html", "keeps.test-2.pb.gz", "keeps.test-2.txt", "keeps.test.html", "keeps.test.pb.gz", "keeps.test.txt", "plain.test.txt"}
	if r.code != 0 || !slices.Equal(names, want) || strings.Count(r.stdout, "ok  \t") != 3 {
		t.Errorf("code %d, %q\n%s%s", r.code, names, r.stdout, r.stderr)
	}
	for text, n := range map[string]int{
		"cheap record: the C heap of keeps.test\n":                2,
		"  profile     go tool pprof ":                            2,
		"  page        " + module + "/profiles/keeps.test.html\n": 1,
		" 9.77 KiB":                                0,
		"at most     97":                           1, // KiB, and some bytes for each thread
		"977 KiB  keeps.Keep keeps.go:12\n":        1,
		"at most     1.91 MiB in use":              1,
		"cheap record: 1 program was not recorded": 1,
		"is linked statically":                     0,
	} {
		if strings.Count(r.stderr, text) != n {
			t.Errorf("%d times %q, want %d:\n%s", strings.Count(r.stderr, text), text, n, r.stderr)
		}
	}
	r, names = recordGoIn(t, module, "go", "run", "./program", "-exec", "an argument")
	if want := []string{"program.html", "program.pb.gz", "program.txt"}; r.code != 1 || !slices.Equal(names, want) || r.stdout != "[-exec an argument]\n" ||
		!strings.Contains(r.stderr, "exit status 7\n") || !strings.Contains(r.stderr, "cheap record: the C heap of program\n") {
		t.Errorf("code %d, %q\n%s%s", r.code, names, r.stdout, r.stderr)
	}
	for _, dir := range [][]string{{"-C", "keeps"}, {"-C=keeps"}} {
		r, names = recordGoIn(t, module, slices.Concat([]string{"go", "test"}, dir, []string{"."})...)
		if want := []string{"keeps.test.html", "keeps.test.pb.gz", "keeps.test.txt"}; r.code != 0 || !slices.Equal(names, want) {
			t.Errorf("%q: code %d, %q\n%s%s", dir, r.code, names, r.stdout, r.stderr)
		}
	}
	// What another run writes meanwhile into the folder is not shown.
	r, names = recordGoIn(t, module, "go", "test", "./beside", "./keeps")
	if want := []string{"beside.test.txt", "keeps.test.html", "keeps.test.pb.gz", "keeps.test.txt", "other.pb.gz", "other.txt"}; r.code != 0 || !slices.Equal(names, want) ||
		strings.Contains(r.stderr, "of another run") || !strings.Contains(r.stderr, "the C heap of keeps.test\n") {
		t.Errorf("beside another run: code %d, %q\n%s%s", r.code, names, r.stdout, r.stderr)
	}
	if r, _ = recordGoIn(t, module, "go", "test", "./failing"); r.code != 1 || !strings.Contains(r.stdout, "as it should") {
		t.Errorf("a test that fails: code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestRecordFolder records one program into a folder twice, and a third time its page cannot be written.
func TestRecordFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program, out := filepath.Join(folder, "full"), filepath.Join(folder, "out")
	compileC(t, program, `
#include <stdlib.h>
#include <unistd.h>
void *volatile kept;
int main(int argc, char **argv) {
	kept = malloc(123456);
	return argc > 1 && symlink("/dev/full", argv[1]) != 0;
}
`)
	for _, c := range []struct {
		args  []string
		code  int
		want  string
		files []string
	}{
		{nil, 0, "wrote full.pb.gz, full.html and full.txt into " + out + "\n", []string{"full.html", "full.pb.gz", "full.txt"}},
		{nil, 0, "wrote full-2.pb.gz, full-2.html and full-2.txt into " + out + ", beside those of 1 earlier run\n",
			[]string{"full-2.html", "full-2.pb.gz", "full-2.txt", "full.html", "full.pb.gz", "full.txt"}},
		{[]string{out + "/full-3.html"}, exitFailed, "full-3.html: no space left on device\n",
			[]string{"full-2.html", "full-2.pb.gz", "full-2.txt", "full-3.txt", "full.html", "full.pb.gz", "full.txt"}},
	} {
		r := record(t, append([]string{"-o", out + "/", program}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) || c.code == 0 && !strings.Contains(r.stderr, "\n  page        "+out+"/full") {
			t.Errorf("code %d, want %d and %q in\n%s", r.code, c.code, c.want, r.stderr)
		}
		entries, err := os.ReadDir(out)
		testcall.Must(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if !slices.Equal(names, c.files) {
			t.Errorf("the folder has %q, want %q", names, c.files)
		}
	}
	page := filepath.Join(folder, "page.html")
	for range 2 {
		r := record(t, "-o", page, program, page+".link")
		if _, err := os.Stat(page); err != nil || strings.Contains(r.stderr, page+" was there, and was replaced\n") != (r.code == 1) {
			t.Errorf("%v, code %d\n%s", err, r.code, r.stderr) // the program fails the second time, as the link is there
		}
	}
	if r := record(t, "-o", page+".link", program); r.code != exitFailed || !strings.Contains(r.stderr, "no space left on device") {
		t.Errorf("a full disk: code %d\n%s", r.code, r.stderr)
	}
}
