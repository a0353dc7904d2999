package tables

import (
	"maps"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

func TestDoublings(t *testing.T) {
	for cores, want := range map[int][]int{
		1: {1, 2}, 2: {1, 2, 4}, 3: {1, 2, 3, 4}, 4: {1, 2, 4, 8}, 6: {1, 2, 4, 6, 8},
		20: {1, 2, 4, 8, 16, 20, 32}, 16: {1, 2, 4, 8, 16, 32},
	} {
		if got := doublings(cores); !slices.Equal(got, want) {
			t.Errorf("%d cores: %v, want %v", cores, got, want)
		}
	}
}

// TestCode reads the compiled loops: each loop exists, and makes its calls. A called
// function is named by a part of a line of the disassembly.
func TestCode(t *testing.T) {
	loops := map[string][]string{
		"inlined":           nil,
		"called":            {"CALL"},
		"(*locker).lock":    {"sync.(*Mutex).lockSlow", "sync.(*Mutex).unlockSlow"},
		"(*decoder).decode": {"encoding/json.(*Decoder).Decode"},
		"heapPairs":         {"heap.(*Heap).Malloc", "heap.(*Heap).Free"},
		"localPairs":        {"heap.(*Local).Malloc", "heap.(*Local).Free"},
	}
	if HasC {
		maps.Copy(loops, map[string][]string{
			"add":       {"cside._Cfunc_cside_add"},
			"addQuiet":  {"cside._Cfunc_cside_add_quiet"},
			"libcPairs": {"cside._Cfunc_cside_malloc", "cside._Cfunc_cside_free"},
		})
	}
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skipf("the test cannot read the code of %s", runtime.GOARCH)
	}
	for name, calls := range loops {
		body := disassembly(t, name)
		switch {
		case len(calls) == 0 && (strings.Contains(body, "CALL") || !jump.MatchString(body)):
			t.Errorf("%s is no loop without calls:\n%s", name, body)
		case strings.Contains(body, "tables.empty"):
			t.Errorf("the call of %s is not through a func value:\n%s", name, body)
		}
		for _, call := range calls {
			if !strings.Contains(body, call) {
				t.Errorf("%s does not call %s:\n%s", name, call, body)
			}
		}
	}
}

// compiled is this package in the build cache. It is not this program: test binaries have no symbols.
var compiled = sync.OnceValues(func() (string, error) {
	file, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", ".").Output()
	return strings.TrimSpace(string(file)), err
})

// jump is an instruction that goes elsewhere.
var jump = regexp.MustCompile(`(?m)\t(?:J|B|CB|TB)[A-Z]* \S+\s*$`)

// disassembly returns the code of a function of this package.
func disassembly(t *testing.T, name string) string {
	t.Helper()
	object, err := compiled()
	testcall.Must(t, err)
	symbol := regexp.QuoteMeta("/internal/tables."+name) + "$"
	out, err := exec.Command("go", "tool", "objdump", "-s", symbol, object).CombinedOutput()
	if err != nil {
		t.Fatalf("go tool objdump: %v\n%s", err, out)
	}
	return string(out)
}
