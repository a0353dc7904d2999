//go:build cgo && (amd64 || arm64) && !race

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// plantedPrograms are the programs of testdata/planted, and what a person says of them. in has parts of the
// sentence and of what to do. without says to run it without module cmem as well.
var plantedPrograms = []struct {
	name, about, in string
	without         bool
}{
	{"leak", "c_grows", "main.find|cmem", true},
	{"middle", "c_grows", "cmem", true},
	{"arenas", "malloc_free", "in use|free inside malloc|MALLOC_ARENA_MAX", true},
	{"gaps", "malloc_free", "libc.Trim", false},
	{"goroutines", "goroutines", "goroutines have", false},
	{"wasteheap", "go_idle", "no leak", false},
	{"gomap", "go_grows", "reachable and growing", false},
	{"gcoff", "go_garbage", "GOGC is off", false},
	{"smallsizes", "sizes", "pools declare 39.1 MiB", true},
	{"nosizes", "sizes", "without a size", false},
	{"pool", "pool_grows", "pool images", true},
	{"mmap", "mapping_grows", "mapped without malloc", false},
	{"file", "nothing", "planted-|page cache", false},
	{"threads", "threads", "threads have", false},
	{"heap", "heap_grows", "heap sessions", false},
	{"heapidle", "cheap_idle", "free", false},
	{"cacheserver", "nothing", "", true},
	{"cserver", "nothing", "", true},
	{"goserver", "nothing", "", false},
}

// TestPlanted runs programs that do one thing wrong, or nothing, with module cmem and without it.
func TestPlanted(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		return // the programs need a compiler of C
	}
	for _, build := range []struct{ name, tags string }{{"cmem", ""}, {"without", "cheap_nocmem"}} {
		program := filepath.Join(t.TempDir(), "planted")
		if err := testchild.Build(program, nil, "-tags="+build.tags, "./testdata/planted"); err != nil {
			t.Fatal(err)
		}
		for _, p := range plantedPrograms {
			if build.tags != "" && !p.without {
				continue
			}
			v, table := runPlanted(t, program, p.name)
			if v.About != resident.About(p.about) || v.Fault != (p.about != "nothing") {
				t.Errorf("%s, %s: %v, want %s\n%+v\n%s", p.name, build.name, v, p.about, v, table)
			}
			for _, part := range strings.Split(p.in, "|") {
				if build.tags == "" && !strings.Contains(v.String(), part) {
					t.Errorf("%s: %q is not in %q", p.name, part, v)
				}
			}
			t.Logf("%s, %s: %v", p.name, build.name, v)
		}
	}
}

// runPlanted returns the verdict of a program on itself, and its table.
func runPlanted(t *testing.T, program, name string) (resident.Verdict, string) {
	t.Helper()
	cmd := exec.Command(program, name)
	cmd.Env = append(os.Environ(), "GOGC=100", "GOMEMLIMIT=off", "MALLOC_ARENA_MAX=", "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var answer struct {
		Verdict resident.Verdict
		Table   string
	}
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return answer.Verdict, answer.Table
}
