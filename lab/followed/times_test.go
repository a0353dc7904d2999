//go:build cheap_times && linux

// Package followed has programs with public bindings, and what `cheap explain` says of them, done by
// hand. The flag -followed of a program has it done.
package followed

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var programs = []string{"treesitter"}

const rounds = 5

// TestTimeFollowed compares the share of the processor time that the first advice promises with the
// share that is gone when it is followed: within a third of that.
func TestTimeFollowed(t *testing.T) {
	bin := t.TempDir()
	build := func(dir, pkg, name string) string {
		t.Helper()
		file := filepath.Join(bin, name)
		command := exec.Command("go", "build", "-o", file, pkg)
		command.Dir = dir
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		return file
	}
	cheap := build("../../cmd/cheap", ".", "cheap")
	for _, name := range programs {
		t.Run(name, func(t *testing.T) {
			program := build(".", "./"+name, name)
			output, err := exec.Command(cheap, "explain", "-json", "./"+name).Output()
			if err != nil {
				t.Fatal(err)
			}
			var r struct {
				Advice []struct {
					Site          string
					Now, Expected float64
				}
			}
			if err := json.Unmarshal(output, &r); err != nil || len(r.Advice) == 0 {
				t.Fatalf("%v: %s", err, output)
			}
			var before, behind time.Duration
			for range rounds {
				before += processorTime(t, program, "-walks=100")
				behind += processorTime(t, program, "-walks=100", "-followed")
			}
			promised, found := r.Advice[0].Now-r.Advice[0].Expected, 1-float64(behind)/float64(before)
			t.Logf("%s: %v before, %v behind: promised %.2f of the processor time, found %.2f", r.Advice[0].Site, before/rounds, behind/rounds, promised, found)
			if math.Abs(promised-found) > found/3 {
				t.Error("that is more than a third off")
			}
		})
	}
}

func processorTime(t *testing.T, program string, args ...string) time.Duration {
	t.Helper()
	command := exec.Command(program, args...)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime()
}
