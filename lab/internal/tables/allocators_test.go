//go:build cgo && unix

package tables

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/replay/recorded"
	"github.com/cheapgo/cheap/lab/internal/rivals"
)

func TestAllocators(t *testing.T) {
	var want []string
	for _, a := range []string{"temporary-data", "grow-shrink", "multilayer-temporary-data", "multilayer-grow-shrink"} {
		want = append(want, a+"-malloc", a+"-cgoalloc", a+"-dropin")
		if !strings.HasPrefix(a, "multilayer") {
			want = append(want, a+"-dropin-default")
		}
		want = append(want, a+"-heap")
		if a == "temporary-data" {
			want = append(want, a+"-local", a+"-native")
		}
	}
	a := "arena-temporary-data"
	want = append(want, a+"-malloc", a+"-cgoalloc", a+"-dropin", a+"-arena")
	table := Allocators()
	wantNames(t, table, want)
	for _, row := range table.Rows {
		round(t, row, 1001)
	}
}

func TestStrings(t *testing.T) {
	var want []string
	for _, size := range []int{20, 1024} {
		for _, way := range []string{"cstring", "cgoalloc", "cgoparam", "arena", "go-bytes"} {
			want = append(want, fmt.Sprintf("%s-%d", way, size))
		}
	}
	for _, way := range []string{"malloc", "cgoalloc", "cgoparam", "arena"} {
		want = append(want, "four-parameters-"+way)
	}
	want = append(want, "four-parameters-dropin", "ten-parameters-cgoparam", "ten-parameters-dropin")
	table := Strings()
	wantNames(t, table, want)
	for _, row := range table.Rows {
		round(t, row, 1001)
	}
}

// TestCounted checks that rows which do less than their work are detected.
func TestCounted(t *testing.T) {
	calls := int64(0)
	w := counted(func(n int) error { calls += int64(n) - 2; return nil }, func() int64 { return calls }, 1)
	w.Run(100)
	if err := w.Check(100); err == nil {
		t.Error("98 calls of 100 were enough")
	}
	w = counted(func(int) error { return fmt.Errorf("failed") }, func() int64 { return 100 }, 0)
	w.Run(100)
	if err := w.Check(100); err == nil {
		t.Error("a failure was not reported")
	}
}

func TestTraces(t *testing.T) {
	var want []string
	for _, name := range recorded.Names {
		for _, info := range rivals.Available() {
			want = append(want, info.Name+"-"+name)
			if info.Name == "heap" || info.Name == "local" {
				want = append(want, info.Name+"-sampled-"+name, info.Name+"-guarded-"+name)
			}
		}
		tr, err := recorded.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if recordedOps[name] != len(tr.Ops) {
			t.Errorf("%s has %d operations, the table says %d", name, len(tr.Ops), recordedOps[name])
		}
	}
	table := Traces()
	wantNames(t, table, want)
	for _, row := range table.Rows {
		round(t, row, row.N)
	}
	w, err := table.Rows[0].Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, _, err := w.Time(table.Rows[0].N + 1); err == nil {
		t.Error("a part of a replay was timed")
	}
}
