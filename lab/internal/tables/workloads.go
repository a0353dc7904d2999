package tables

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/workloads"
)

// mostWorkers is the most threads of a workload, unless -cpu says otherwise.
const mostWorkers = 8

// Workloads is the table of the programs with which the literature compares
// allocators.
func Workloads() measure.Table { return workloadTable(preload.Find) }

// workloadTable makes the table with the libraries that find finds.
func workloadTable(find func(name string) (preload.Library, error)) measure.Table {
	t := measure.Table{Table: result.Table{
		Name:  "workloads",
		Title: "Allocators in the workloads of the literature",
		About: "The same program on a Heap, on a Local if it has one goroutine, and in C on C's malloc (native) and on libraries that replace it. " +
			"Each is a process of its own. An operation is a block that is allocated, marked, read and freed; a Realloc frees one and allocates one.",
		Unit:  "operation",
		Chart: result.Bars,
	}, Named: true}
	natives := nativeMallocs(&t, find)
	for _, w := range workloads.All() {
		t.Rows = append(t.Rows, workloadRows(&w, natives)...)
	}
	return t
}

// nativeMallocs returns what C's malloc may be on this machine: that of the C library,
// and those to preload. What is not here is in the notes of the table.
func nativeMallocs(t *measure.Table, find func(name string) (preload.Library, error)) []preload.Library {
	if why := workloads.MissingNative(); why != "" {
		t.Notes = append(t.Notes, fmt.Sprintf("%s: no malloc of C is measured: %s", t.Name, why))
		return nil
	}
	all := []preload.Library{{Name: workloads.Native}}
	for _, name := range preload.Names() {
		l, err := find(name)
		if err != nil {
			t.Notes = append(t.Notes, t.Name+": "+err.Error())
			continue
		}
		all = append(all, l)
	}
	return all
}

// workloadRows returns the rows of a workload: those of cheap, then the natives.
func workloadRows(w *workloads.Workload, natives []preload.Library) (rows []measure.Row) {
	named := func(allocator string) string { return w.Name + "-" + allocator }
	var others []string
	for _, l := range natives {
		others = append(others, named(l.Name))
	}
	row := measure.Row{Group: w.Name, N: w.Ops, Apart: true, Keeps: true}
	if w.Threads {
		// With one there would be none to free the blocks of.
		row.Procs = []int{min(max(runtime.NumCPU(), 2), mostWorkers)}
	}
	if len(natives) > 0 {
		row.Versus = others[0]
	}
	for _, allocator := range w.Allocators() {
		if allocator == workloads.Native {
			continue
		}
		ours := row
		ours.Name, ours.CPUVersus = named(allocator), others
		ours.Open = func(procs int) (measure.Work, error) { return openWorkload(w, allocator, procs) }
		rows = append(rows, ours)
	}
	for i, l := range natives {
		native := row
		native.Name = others[i]
		if l.Path != "" {
			native.Env = []string{l.Env()}
		} else {
			native.Versus = ""
		}
		native.Open = func(procs int) (measure.Work, error) {
			if l.Path != "" {
				if err := preload.Check(l.Path); err != nil {
					return measure.Work{}, &preload.MissingError{Name: l.Name, Reason: err.Error()}
				}
			}
			return openWorkload(w, workloads.Native, procs)
		}
		rows = append(rows, native)
	}
	return rows
}

// openWorkload opens a workload in the process of its row.
func openWorkload(w *workloads.Workload, allocator string, procs int) (measure.Work, error) {
	r, err := w.Open(allocator, procs)
	if err != nil {
		return measure.Work{}, err
	}
	var did workloads.Tally
	run := func(n int) { did, err = r.Run(n) }
	on := func(f func()) { f() }
	if allocator == workloads.Native {
		on = OnMain // where a program in C begins
	}
	return measure.Work{
		Run: func(n int) { on(func() { run(n) }) },
		Check: func(n int) error {
			if err != nil {
				return err
			}
			return errors.Join(allDone(int(did.Blocks), n), allDone(int(did.Frees), n))
		},
		Close: func() { _ = r.Close() }, // Check has reported live blocks
	}, nil
}
