package cheap

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/poison"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testenv"
)

var updateAttacks = flag.Bool("attacks.update", false, "write what TestAttacks finds to docs/reference/attacks.md")

const attackFile = "docs/reference/attacks.md"

var attackSizes = []int{16, 1 << 10, 1 << 20}

// An attackTable is one of the tables of the document.
type attackTable struct {
	marker string // with which its head begins
	rows   []attack
	groups int // of three columns each, for attackSizes
	notes  bool
}

var (
	attacksOfBuilds = attackTable{"| attack | ", attacks, 4, true}
	attacksOfAsan   = attackTable{"| read or write | ", writeAttacks, 1, false}
)

// row returns a line of the table.
func (table attackTable) row(a attack, cells []string) string {
	row := "| " + a.name + " | " + strings.Join(cells, " | ") + " |"
	switch {
	case !table.notes:
		return row
	case a.why == "":
		return row + "   |"
	}
	return row + " " + a.why + " |"
}

// An attackColumn is a group of three columns of a table, with the environment that the
// processes for it have.
type attackColumn struct {
	group int
	env   []string
}

// attackColumns are those for this build.
func attackColumns() (attackTable, []attackColumn) {
	columns := []attackColumn{{0, nil}, {2, []string{"CHEAP_CHECK=stacks"}}, {3, []string{"CHEAP_GUARD=1"}}}
	switch {
	case unsafe.Sizeof(uintptr(0)) != 8 || percpu.Portable:
		columns = nil
	case poison.Build && os.Getenv("CHEAP_TEST_ASAN") != "":
		return attacksOfAsan, []attackColumn{{0, nil}}
	case poison.Build: // the sanitizer knows nothing of these mistakes
		columns = nil
	case race.Build && osmem.GoBacked:
		columns = []attackColumn{{1, nil}}
	case race.Build || osmem.GoBacked:
		columns = nil
	}
	return attacksOfBuilds, columns
}

// verdicts makes the attack, and returns what came of it for each of attackSizes, and what was
// printed. It has a process for itself, and one for each size where the sanitizer ends the
// process.
func (a attack) verdicts(t *testing.T, column attackColumn) (all, printed [3]string) {
	if poison.Build && os.Getenv("CHEAP_TEST_ASAN") != "" {
		for i, size := range attackSizes {
			t.Run(strconv.Itoa(size), func(t *testing.T) {
				output, _ := testchild.Run(t, func() { fmt.Println("verdict:", a.run(size)) })
				all[i], printed[i] = verdictIn(output, "verdict: "), output
				if strings.Contains(output, "AddressSanitizer: use-after-poison") && !strings.Contains(output, attackEnded) {
					all[i] = "now"
				}
			})
		}
		return all, printed
	}
	output, _ := testchild.Run(t, func() {
		for _, size := range slices.Backward(attackSizes) { // so that a large block is fresh
			fmt.Printf("verdict of %d: %s\n", size, a.run(size))
		}
	}, column.env...)
	for i, size := range attackSizes {
		all[i], printed[i] = verdictIn(output, fmt.Sprintf("verdict of %d: ", size)), output
	}
	return all, printed
}

// verdictIn returns what a line of the output says that begins with before.
func verdictIn(output, before string) string {
	_, after, ok := strings.Cut(output, before)
	if !ok {
		return "crash"
	}
	verdict, _, _ := strings.Cut(after, "\n")
	return verdict
}

// stronger reports whether a mistake was noticed sooner than the table says. It is where the system
// takes pages from the process with their memory: a use of them faults, and they are zero when they
// come back.
func stronger(verdict, said string) bool {
	order := []string{"no", "later", "now", "fault"}
	return slices.Index(order, verdict) > slices.Index(order, said) && slices.Index(order, said) >= 0
}

// TestAttacks runs each attack in a process of its own, and compares what came of it with the
// table in docs/reference/attacks.md: in a program of -asan whose heaps are watched with the second one, and
// else with the first. Whatever the table says, no process crashes, and no wrong pointer goes
// unnoticed without a reason.
func TestAttacks(t *testing.T) {
	table, columns := attackColumns()
	if columns == nil {
		return
	}
	data, err := os.ReadFile(attackFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	head := strings.Index(text, table.marker)
	if head < 0 {
		t.Fatalf("%s has no table", attackFile)
	}
	lines := strings.Split(text[head:], "\n")
	said := map[string][]string{}
	end := 2
	for ; strings.HasPrefix(lines[end], "|"); end++ {
		cells := strings.Split(strings.Trim(lines[end], "| "), " | ")
		said[cells[0]] = cells[1:]
	}
	rows := make([]string, len(table.rows))
	t.Cleanup(func() { // when all rows are there
		if testchild.Is() {
			return
		}
		text = text[:head] + strings.Join(lines[:2], "\n") + "\n" + strings.Join(rows, "\n") + "\n" + strings.Join(lines[end:], "\n")
		switch {
		case *updateAttacks:
			if err := os.WriteFile(attackFile, []byte(text), 0o644); err != nil {
				t.Error(err)
			}
		case text != string(data) && !t.Failed():
			t.Errorf("%s does not have the attacks of this test; run go test -run=TestAttacks -attacks.update", attackFile)
		}
	})
	for n, a := range table.rows {
		cells := said[a.name]
		for len(cells) < 3*table.groups {
			cells = append(cells, "?")
		}
		cells = cells[:3*table.groups]
		mustNotice := a.why == "" && !slices.ContainsFunc(writeAttacks, func(w attack) bool { return w.name == a.name })
		rows[n] = table.row(a, cells) // stays if -run leaves the attack out
		t.Run(a.name, func(t *testing.T) {
			defer func() { rows[n] = table.row(a, cells) }()
			if testenv.Emulated() && n%4 != 0 {
				return // a process takes ten times as long
			}
			t.Parallel()
			for _, column := range columns {
				all, printed := a.verdicts(t, column)
				for i, verdict := range all {
					if verdict == "crash" || mustNotice && verdict != "now" && verdict != "nil" {
						t.Errorf("%d bytes: %s, whatever the table says\n%s", attackSizes[i], verdict, printed[i])
					}
					at := 3*column.group + i
					if osmem.DecommitRevokes && stronger(verdict, cells[at]) {
						continue
					}
					if cells[at] != verdict && !*updateAttacks {
						t.Errorf("%d bytes, column %d: %s, the table says %s\n%s", attackSizes[i], 1+at, verdict, cells[at], printed[i])
					}
					cells[at] = verdict
				}
			}
		})
	}
	security, err := os.ReadFile("SECURITY.md")
	if err != nil || !strings.Contains(string(security), fmt.Sprintf(" %d mistakes", len(attacks))) {
		t.Errorf("SECURITY.md does not say that there are %d mistakes: %v", len(attacks), err)
	}
}
