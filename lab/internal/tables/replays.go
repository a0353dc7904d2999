package tables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	numbers "github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/replay"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/replay/recorded"
	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/rivals"
)

// Replays returns a table for each trace: a file, or the name of one that is part of this program. It
// has a row for each allocator of this build, and for each library that is C's malloc in a process that
// it is preloaded into: those with a name that are here, and those at the paths. Each row has a process
// of its own, which replays the trace once with all bytes of its blocks verified.
func Replays(traces, paths []string) ([]measure.Table, error) {
	var all []measure.Table
	for _, arg := range traces {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(arg), ".gz"), ".fht")
		isNamed := func(t measure.Table) bool { return t.Name == name }
		if slices.ContainsFunc(all, isNamed) {
			name = arg
		}
		if slices.ContainsFunc(all, isNamed) {
			return nil, fmt.Errorf("the trace %s is named twice; name each once", arg)
		}
		tr, err := readTrace(arg)
		if err != nil {
			return nil, err
		}
		t := measure.Table{Table: result.Table{
			Name: name, Title: numbers.Plural(len(tr.Ops), "operation") + " of a real program, replayed", Unit: "operation", Chart: result.Bars,
			About: "heap and local are cheap.Heap and cheap.Local; native is C's malloc called from C, libc the same malloc called from Go. " +
				"A library that takes the place of C's malloc has its own name, and is called from C.",
		}}
		for _, info := range rivals.Available() {
			t.Rows = append(t.Rows, replayRow(info.Name, tr, info, preload.Library{}))
		}
		natives := nativeMallocs(&t, preload.Find)
		for _, path := range paths {
			l, err := preload.Find(path)
			if err != nil {
				return nil, fmt.Errorf("-native: %w", err)
			}
			natives = append(natives, l)
		}
		for _, l := range natives {
			if l.Path == "" {
				continue // it is a row already
			}
			if slices.ContainsFunc(t.Rows, func(r measure.Row) bool { return r.Name == l.Name }) {
				return nil, fmt.Errorf("%s would be the second row with the name %s", l.Path, l.Name)
			}
			native, err := peers.Lookup("native")
			if err != nil {
				return nil, err
			}
			t.Rows = append(t.Rows, replayRow(l.Name, tr, native, l))
		}
		all = append(all, t)
	}
	return all, nil
}

// replayRow is a trace on an allocator, with a library preloaded unless it has no path.
func replayRow(name string, tr *trace.Trace, info peers.Info, l preload.Library) measure.Row {
	row := measure.Row{Name: name, Group: "replay", N: len(tr.Ops), Procs: []int{1}, Apart: true}
	if cgoHere && name != "native" {
		row.Versus = "native"
	}
	if l.Path != "" {
		row.Env = []string{l.Env()}
	}
	row.Open = func(int) (w measure.Work, err error) {
		if l.Path != "" {
			if err := preload.Check(l.Path); err != nil {
				return measure.Work{}, &preload.MissingError{Name: l.Name, Reason: err.Error()}
			}
		}
		var m replay.Memory
		OnMain(func() { m, err = replay.MeasureMemory(tr, info) })
		if err == nil || errors.Is(err, errors.ErrUnsupported) {
			OnMain(func() { err = replay.Verify(context.Background(), tr, info) })
		}
		if err != nil {
			return measure.Work{}, err
		}
		w, err = replaying(func() (*trace.Trace, error) { return tr, nil }, info)
		w.Figures = func() measure.Figures { return measure.Figures{Resident: m.Peak, Kept: m.Final} }
		return w, err
	}
	return row
}

// readTrace prefers a file to an embedded trace of the same name. An error names the trace. A trace
// without operations is one.
func readTrace(name string) (*trace.Trace, error) {
	var file io.ReadCloser
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		embedded, missing := recorded.Open(name)
		if missing != nil {
			return nil, fmt.Errorf("%w; the traces of this program are %s", err, strings.Join(recorded.Names, " and "))
		}
		file, err = embedded, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tr, err := trace.Read(file)
	if err == nil && len(tr.Ops) == 0 {
		err = errors.New("the trace has no operations")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return tr, nil
}
