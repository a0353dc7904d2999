package tables

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/workloads"
)

// some is a machine on which jemalloc is installed, and none of the others.
func some(name string) (preload.Library, error) {
	if name != "jemalloc" {
		return preload.Library{Name: name}, &preload.MissingError{Name: name, Reason: "there is no such file"}
	}
	return preload.Library{Name: name, Path: "/lib/jemalloc.so"}, nil
}

func TestWorkloads(t *testing.T) {
	table := workloadTable(some)
	var want []string
	natives := []string{"native", "jemalloc"}
	if workloads.MissingNative() != "" {
		natives = nil
	}
	for _, w := range workloads.All() {
		all := []string{"heap"}
		if !w.Threads {
			all = append(all, "local")
		}
		for _, allocator := range append(all, natives...) {
			want = append(want, w.Name+"-"+allocator)
		}
	}
	wantNames(t, table, want)
	if !table.Named {
		t.Error("the table is measured without its name")
	}
	for _, row := range table.Rows {
		checkWorkloadRow(t, row)
	}
	notes := strings.Join(table.Notes, "\n")
	wanted := []string{"workloads: mimalloc is not measured: there is no such file", "workloads: tcmalloc is not measured: there is no such file"}
	if natives == nil {
		wanted = []string{"workloads: no malloc of C is measured: it needs cgo and a Unix system"}
	}
	if notes != strings.Join(wanted, "\n") {
		t.Errorf("the notes are\n%s", notes)
	}
}

// checkWorkloadRow looks at what a row is compared with, and at its process.
func checkWorkloadRow(t *testing.T, row measure.Row) {
	t.Helper()
	workload, allocator := row.Group, strings.TrimPrefix(row.Name, row.Group+"-")
	versus, others := workload+"-native", []string{workload + "-native", workload + "-jemalloc"}
	if workloads.MissingNative() != "" {
		versus, others = "", nil
	}
	var env []string
	switch allocator {
	case "heap", "local":
	case "native":
		versus, others = "", nil
	default:
		others, env = nil, []string{"LD_PRELOAD=/lib/" + allocator + ".so"}
	}
	if row.Versus != versus || !slices.Equal(row.CPUVersus, others) || !slices.Equal(row.Env, env) || !row.Apart || !row.Keeps || row.N == 0 {
		t.Errorf("%+v", row)
	}
	if row.Procs != nil && row.Procs[0] < 2 {
		t.Errorf("%s runs on %d", row.Name, row.Procs)
	}
}

// TestWorkloadRows runs each row here, but for those of a library, which is not the
// malloc of this process.
func TestWorkloadRows(t *testing.T) {
	for _, row := range workloadTable(some).Rows {
		w, err := row.Open(2)
		if strings.HasSuffix(row.Name, "-jemalloc") {
			if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "jemalloc is not measured: malloc is in ") {
				t.Errorf("%s: %v", row.Name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 11} {
			w.Run(n)
			if err := w.Check(n); err != nil {
				t.Errorf("%s: %v", row.Name, err)
			}
			if err := w.Check(n + 1); err == nil {
				t.Errorf("%s: %d operations passed for %d", row.Name, n, n+1)
			}
		}
		w.Close()
	}
}
