//go:build cgo && (amd64 || arm64) && !race

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

// plantedPrograms are the programs of testdata/planted, and what a person says of them. in has parts of the
// sentence and of what to do. without says to run it without module cmem as well, advice what the verdict
// advises, in the words of docs/reference/figures.md.
var plantedPrograms = []struct {
	name, about, in string
	without         bool
	advice          string
}{
	{"cached", "page_cache", "are page cache, not a leak", false, "nothing: the kernel drops it"},
	{"tmpfs", "shared_files", "are files in memory", false, "remove the files"},
	{"pipes", "kernel_memory", "are memory of the kernel", false, "close the pipes"},
	{"process", "others", "are other processes", false, "end the process"},
	{"leak", "c_grows", "main.find|cmem", true, "free on each return"},
	{"middle", "c_grows", "cmem", true, ""},
	{"arenas", "malloc_free", "in use|free inside malloc|libc.Trim", true, "`libc.Trim`"},
	{"turns", "malloc_free", "MALLOC_ARENA_MAX", false, "bound the arenas"},
	{"gaps", "malloc_free", "libc.Trim", false, "`libc.Trim`"},
	{"huge", "malloc_free", "are in huge pages|PR_SET_THP_DISABLE", true, "`libc.Trim`"},
	{"goroutines", "goroutines", "goroutines have", false, "have them end"},
	{"wasteheap", "go_idle", "no leak", false, "debug.FreeOSMemory"},
	{"gomap", "go_grows", "reachable and growing", false, "keep no reference"},
	{"gcoff", "go_garbage", "GOGC is off", false, "lower GOGC"},
	{"smallsizes", "sizes", "pools declare 39.1 MiB", true, ""},
	{"nosizes", "sizes", "without a size", false, ""},
	{"dropped", "sizes", "without a size", true, "declare the sizes"},
	{"keeper", "cache", "frees nothing", false, "free what is asked for"},
	{"pool", "pool_grows", "pool images", true, "close the owners"},
	{"mmap", "mapping_grows", "mapped without malloc", false, "unmap"},
	{"file", "nothing", "planted-|page cache", false, ""},
	{"threads", "threads", "200 threads were begun by the program: deep|goroutines call C at a time", false, "bound how many call C at a time"},
	{"openmp", "threads", "960 threads were begun by libgomp.so.1|OMP_NUM_THREADS", false, "OMP_NUM_THREADS"},
	{"heap", "heap_grows", "heap sessions", false, "free the blocks"},
	{"heapidle", "cheap_idle", "free", false, "a Heap of its own for what stays"},
	{"cacheserver", "nothing", "", true, ""},
	{"cserver", "nothing", "", true, ""},
	{"goserver", "nothing", "", false, ""},
}

var updateFollowed = flag.Bool("followed.update", false, "write the figures of TestPlanted to docs/reference/figures.md and its template")

// TestPlanted runs programs that do one thing wrong, or nothing, with module cmem and without it. Where the verdict gives an
// advice the program is run once more, and follows it. docs/reference/figures.md has how much less is resident then.
func TestPlanted(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("gcc"); err != nil {
		return // the programs need a compiler of C
	}
	const doc = "../../docs/reference/figures.md"
	text, err := os.ReadFile(doc)
	testcall.Must(t, err)
	page, updates := string(text), []string{}
	huge, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled") // not there in a sandbox that has none
	for _, build := range []struct{ name, tags string }{{"cmem", ""}, {"without", "cheap_nocmem"}} {
		program := filepath.Join(t.TempDir(), "planted")
		testcall.Must(t, testchild.Build(program, nil, "-tags="+build.tags, "./testdata/planted"))
		for _, p := range plantedPrograms {
			if p.name == "huge" && (len(huge) == 0 || strings.Contains(string(huge), "[never]")) {
				continue
			}
			if build.tags != "" && !p.without || build.tags == "" && p.name == "dropped" { // package pace sees with cmem what no size says
				continue
			}
			t.Run(p.name+","+build.name, func(t *testing.T) {
				enter := func(*exec.Cmd) {}
				switch p.about {
				case "page_cache", "shared_files", "kernel_memory", "others":
					if enter, err = testchild.Cgroup(t, 100<<20); err != nil {
						t.Logf("no cgroup can be made here: %v", err)
						return
					}
				}
				v, before, table := runPlanted(t, enter, program, p.name)
				if v.About != resident.About(p.about) || v.Fault != (p.about != "nothing" && p.about != "page_cache") {
					t.Errorf("%v, want %s\n%+v\n%s", v, p.about, v, table)
				}
				for _, part := range strings.Split(p.in, "|") {
					if build.tags == "" && !strings.Contains(v.String(), part) {
						t.Errorf("%q is not in %q", part, v)
					}
				}
				t.Log(v)
				if p.advice == "" || build.tags != "" && p.name != "dropped" {
					return
				}
				after, least, _ := runPlanted(t, enter, program, p.name, "followed")
				if least > before/4*3 || after.About == v.About && p.about != "malloc_free" { // some of which stays
					t.Errorf("the advice was followed, %d of %d bytes are resident, and the verdict is %v", least, before, after)
				}
				row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %s \| %s \| %s \| (\d+) MiB \| (\d+) MiB \|$`, p.about, p.name, regexp.QuoteMeta(p.advice)))
				now := fmt.Sprintf("| %s | %s | %s | %d MiB | %d MiB |", p.about, p.name, p.advice, before>>20, least>>20)
				t.Log(now)
				was := row.FindStringSubmatch(page)
				if was == nil {
					t.Fatalf("docs/reference/figures.md has not %s", now)
				}
				for i, n := range []int64{before, least} {
					if stored, _ := strconv.ParseInt(was[i+1], 10, 64); !*updateFollowed && max(n>>20-stored, stored-n>>20) > 8+stored/4 {
						t.Errorf("docs/reference/figures.md has %s, and now it is %s", was[0], now)
					}
				}
				updates = append(updates, was[0], now)
			})
		}
	}
	for _, name := range []string{doc, "../../lab/internal/tables/testdata/figures.md"} {
		if text, err = os.ReadFile(name); err == nil && *updateFollowed {
			err = os.WriteFile(name, []byte(strings.NewReplacer(updates...).Replace(string(text))), 0o666)
		}
		testcall.Must(t, err)
	}
}

// runPlanted returns the verdict of a program on itself, the bytes that it prints at its end, and its table.
func runPlanted(t *testing.T, enter func(*exec.Cmd), program string, args ...string) (v resident.Verdict, bytes int64, table string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GOGC=100", "GOMEMLIMIT=off", "MALLOC_ARENA_MAX=", "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	enter(cmd)
	out, err := cmd.Output()
	var answer struct {
		Verdict resident.Verdict
		Bytes   int64
		Table   string
	}
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return answer.Verdict, answer.Bytes, answer.Table
}
