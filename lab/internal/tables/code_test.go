package tables

import (
	"maps"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
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
		"heapPairs":         {"cheap.(*Heap).Malloc", "cheap.(*Heap).Free"},
		"localPairs":        {"cheap.(*Local).Malloc", "cheap.(*Local).Free"},
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
	object, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	for name, calls := range loops {
		body := loopCode(t, object, name)
		if len(calls) == 0 && strings.Contains(body, "CALL") || strings.Contains(body, "tables.empty") {
			t.Errorf("the loop of %s has a call that is not through a func value:\n%s", name, body)
		}
		for _, call := range calls {
			if !strings.Contains(body, call) {
				t.Errorf("the loop of %s does not call %s:\n%s", name, call, body)
			}
		}
	}
}

// compiled is this package in the build cache. It is not this program: test binaries have no symbols.
var compiled = sync.OnceValues(func() (string, error) {
	file, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", ".").Output()
	return strings.TrimSpace(string(file)), err
})

var (
	// instruction is a line of the disassembly: its address and itself.
	instruction = regexp.MustCompile(`(?m)^\s*\S+\s+(0x[0-9a-f]+)\s+[0-9a-f]+\s+(.*)$`)

	// jump is an instruction that goes elsewhere, and where: by address, or
	// on arm64 by a number of instructions.
	jump = regexp.MustCompile(`^(?:J|B|CB|TB)[A-Z]*\b.*?(?:(0x[0-9a-f]+)|(-?\d+)\(PC\))\s*$`)
)

// loopCode returns the instructions of a loop: those from the target of a jump back
// up to the jump. A jump to the function's start is not a loop: it follows the
// growth of the stack.
func loopCode(t *testing.T, object, name string) string {
	t.Helper()
	lines := instruction.FindAllStringSubmatch(disassembly(t, object, name), -1)
	at := make(map[string]int)
	for i, line := range lines {
		at[line[1]] = i
	}
	for i, line := range lines {
		target := jump.FindStringSubmatch(line[2])
		if target == nil {
			continue
		}
		to, ok := at[target[1]]
		if target[1] == "" {
			by, err := strconv.Atoi(target[2])
			to, ok = i+by, err == nil
		}
		if ok && 0 < to && to <= i {
			var body strings.Builder
			for _, l := range lines[to : i+1] {
				body.WriteString(l[2] + "\n")
			}
			// Calls on slow paths, for which the loop is left, stand behind it.
			for _, l := range lines[i+1:] {
				if strings.Contains(l[2], "Slow") {
					body.WriteString(l[2] + "\n")
				}
			}
			return body.String()
		}
	}
	t.Fatalf("%s has no loop in %d instructions", name, len(lines))
	return ""
}

// disassembly returns the code of a function of this package.
func disassembly(t *testing.T, object, name string) string {
	t.Helper()
	symbol := regexp.QuoteMeta("/internal/tables."+name) + "$"
	out, err := exec.Command("go", "tool", "objdump", "-s", symbol, object).CombinedOutput()
	if err != nil {
		t.Fatalf("go tool objdump: %v\n%s", err, out)
	}
	return string(out)
}
