//go:build cheap_times && linux

// Package followed has programs with public bindings, and what `cheap explain` says of them, done by
// hand. The flag -followed of a program has it done. Package pressure has the functions for caches that the guide
// shows. The programs are in testdata, where what they
// require is in no module of the checkout: a test makes a module of them.
package followed

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// programs are those with the advice that was followed.
var programs = []struct {
	name, advice string // how its site begins
	args         []string
}{
	{"treesitter", "main.count main.go:64", []string{"-walks=100"}},
	{"grocksdb", "main.scan ", []string{"-scans=80"}},
	{"zstd", "main.unpack ", nil},
	{"sqlite", "main.sum ", nil},
}

const (
	rounds   = 5
	explains = 3 // a share of 30 % of 300 samples has an error of 2.6 points
)

// module returns a copy of testdata that is a module.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	testcall.Must(t, os.CopyFS(dir, os.DirFS("testdata")))
	for _, ending := range []string{".mod", ".sum"} {
		testcall.Must(t, os.Rename(filepath.Join(dir, "followed"+ending), filepath.Join(dir, "go"+ending)))
	}
	t.Setenv("GOWORK", "off")
	return dir
}

// goIn runs the go command in a folder.
func goIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// TestFollowed runs the tests of the programs: before and behind they find the same.
func TestFollowed(t *testing.T) {
	dir := module(t)
	goIn(t, dir, "vet", "./...")
	goIn(t, dir, "test", "./...")
}

// TestTimeFollowed compares the share of the processor time that an advice promises with the share that is
// gone when it is followed: within a third of that.
func TestTimeFollowed(t *testing.T) {
	dir, bin := module(t), t.TempDir()
	build := func(dir, pkg, name string) string {
		t.Helper()
		file := filepath.Join(bin, name)
		goIn(t, dir, "build", "-o", file, pkg)
		return file
	}
	cheap := build("../../cmd/cheap", ".", "cheap")
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			promised := 0.0
			for range explains {
				promised += promise(t, cheap, dir, "./"+p.name, p.advice, p.args) / explains
			}
			program := build(dir, "./"+p.name, p.name)
			var before, behind time.Duration
			for range rounds {
				took, found := processorTime(t, program, p.args...)
				before += took
				took, foundToo := processorTime(t, program, append(p.args, "-followed")...)
				behind += took
				if found != foundToo {
					t.Fatalf("the program prints %q, and when the advice is followed %q", found, foundToo)
				}
			}
			found := 1 - float64(behind)/float64(before)
			t.Logf("%s: %v before, %v behind: promised %.2f of the processor time, found %.2f", p.advice, before/rounds, behind/rounds, promised, found)
			if math.Abs(promised-found) > found/3 {
				t.Error("that is more than a third off")
			}
		})
	}
}

// promise returns the share of the processor time that goes if an advice is followed.
func promise(t *testing.T, cheap, dir, pkg, advice string, args []string) float64 {
	t.Helper()
	command := exec.Command(cheap, append([]string{"explain", "-json", pkg}, args...)...)
	command.Dir = dir
	output, err := command.Output()
	testcall.Must(t, err)
	var r struct {
		Advice []struct {
			Site          string
			Now, Expected float64
		}
	}
	if err := json.Unmarshal(output, &r); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, a := range r.Advice {
		if strings.HasPrefix(a.Site, advice) {
			return a.Now - a.Expected
		}
	}
	t.Fatalf("no advice about %s: %+v", advice, r.Advice)
	return 0
}

// processorTime runs a program, and returns what it has used and printed.
func processorTime(t *testing.T, program string, args ...string) (time.Duration, string) {
	t.Helper()
	command := exec.Command(program, args...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	testcall.Must(t, err)
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime(), string(output)
}
