package tables

import (
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// callNames are the rows of calls, with C.
var callNames = []string{"inlined", "func-value", "cgo", "cgo-noescape-nocallback", "mutex", "json"}

func TestCalls(t *testing.T) {
	table := Calls()
	wantNames(t, table, here(callNames))
	for _, row := range table.Rows {
		round(t, row, 1001)
	}
}

func TestScaling(t *testing.T) {
	table := Scaling()
	wantNames(t, table, here(slices.Concat(callNames, []string{"heap", "local", "libc", "none"})))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, row := range table.Rows {
		for _, procs := range []int{1, 2, 3} {
			runtime.GOMAXPROCS(procs)
			for _, n := range []int{1, 1001, 5000} { // less than there are parts, and no multiple
				roundOn(t, row, procs, n)
			}
		}
	}
}

// here returns the rows that this build has.
func here(names []string) []string {
	if HasC {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return strings.HasPrefix(name, "cgo") || name == "libc"
	})
}

// roundOn does n operations of a row on so many processors, and checks that the row
// notices another number.
func roundOn(t *testing.T, row measure.Row, procs, n int) {
	t.Helper()
	w, err := row.Open(procs)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 2 {
		w.Run(n)
		if w.Check == nil {
			if row.Name != "inlined" && row.Name != "func-value" && row.Name != "none" {
				t.Errorf("the operations of %s are not counted", row.Name)
			}
			return
		}
		if err := w.Check(n); err != nil {
			t.Errorf("%s on %d: %v", row.Name, procs, err)
		}
		w.Run(n)
		if err := w.Check(n + 1); err == nil {
			t.Errorf("%s on %d: %d operations passed for %d", row.Name, procs, n, n+1)
		}
	}
}

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

// A quotation is the figures of sources for a row.
type quotation struct {
	row   string
	procs int
	ns    []float64
}

// wantPublished fails unless a table has these figures and no others.
func wantPublished(t *testing.T, table measure.Table, procs []int, want []quotation) {
	t.Helper()
	names := make(map[string]bool)
	for _, s := range table.Sources {
		names[s.Name] = true
	}
	for _, row := range table.Rows {
		for _, p := range procs {
			var published []result.Published
			if row.Published != nil {
				published = row.Published(p)
			}
			var got []float64
			for _, f := range published {
				got = append(got, f.Ns)
				if name, _, _ := strings.Cut(f.Source, ", "); !names[name] {
					t.Errorf("%s: source %q is none of the table's", row.Name, f.Source)
				}
			}
			i := slices.IndexFunc(want, func(f quotation) bool { return f.row == row.Name && f.procs == p })
			switch {
			case i < 0 && got != nil:
				t.Errorf("%s on %d has %v", row.Name, p, got)
			case i >= 0 && !slices.Equal(got, want[i].ns):
				t.Errorf("%s on %d has %v, want %v", row.Name, p, got, want[i].ns)
			}
		}
	}
}

func TestPublishedCalls(t *testing.T) {
	procs := []int{1, 2, 4, 8, 16, 20, 32, 64}
	wantPublished(t, Calls(), procs, []quotation{
		{"inlined", 1, []float64{0.271}}, {"inlined", 16, []float64{0.0249}},
		{"func-value", 1, []float64{1.5}}, {"func-value", 16, []float64{0.135}},
		{"cgo", 1, []float64{40}}, {"cgo", 16, []float64{4.28}},
		{"mutex", 1, []float64{25}},
		{"json", 1, []float64{52.9}}, {"json", 16, []float64{5.5}},
	})
	want := []quotation{{"json", 1, []float64{52.79}}, {"json", 16, []float64{5.471}}}
	for name, series := range map[string][]float64{
		"inlined":    {0.278, 0.138, 0.0738, 0.0409, 0.0248},
		"func-value": {1.665, 0.835, 0.444, 0.239, 0.140},
		"cgo":        {38.93, 20.30, 10.46, 6.13, 4.95, 4.33},
	} {
		for i, ns := range series {
			want = append(want, quotation{name, 1 << i, []float64{ns}})
		}
	}
	wantPublished(t, Scaling(), procs, want)
}

// TestCode reads the compiled loops: each loop exists, and makes its calls. A called
// function is named by a part of a line of the disassembly.
func TestCode(t *testing.T) {
	testCode(t, map[string][]string{
		"inlined":           nil,
		"called":            {"CALL"},
		"(*locker).lock":    {"sync.(*Mutex).lockSlow", "sync.(*Mutex).unlockSlow"},
		"(*decoder).decode": {"encoding/json.(*Decoder).Decode"},
		"heapPairs":         {"cheap.(*Heap).Malloc", "cheap.(*Heap).Free"},
		"localPairs":        {"cheap.(*Local).Malloc", "cheap.(*Local).Free"},
	})
}

func testCode(t *testing.T, loops map[string][]string) {
	t.Helper()
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
