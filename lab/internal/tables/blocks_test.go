package tables

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// TestBlocks does short rounds of the rows of this process, and checks which rows have
// one of their own.
func TestBlocks(t *testing.T) {
	table := Blocks()
	var names []string
	for _, row := range table.Rows {
		name, _, _ := strings.Cut(row.Name, "-")
		if !strings.HasSuffix(row.Name, "-64") {
			continue
		}
		names = append(names, name)
	}
	want := "mmap heap"
	if cgoHere {
		want = "malloc calloc jemalloc mmap heap"
		if len(table.Notes) > 0 {
			want = "malloc calloc mmap heap"
			if len(table.Notes) != 1 || !strings.HasPrefix(table.Notes[0], "blocks: jemalloc is not measured: ") {
				t.Errorf("notes %q", table.Notes)
			}
		}
	}
	if runtime.GOOS != "windows" && strings.Join(names, " ") != want {
		t.Errorf("the rows are %q, want %q", names, want)
	}
	if len(table.Rows) != len(blockSizes)*len(names) {
		t.Errorf("%d rows", len(table.Rows))
	}
	for _, row := range table.Rows {
		if strings.HasPrefix(row.Name, "jemalloc-") {
			if !row.Apart || len(row.Env) != 1 || !strings.HasPrefix(row.Env[0], "LD_PRELOAD=/") {
				t.Errorf("%s: apart %v, with %q", row.Name, row.Apart, row.Env)
			}
			if _, err := row.Open(1); err == nil || !strings.Contains(err.Error(), "jemalloc is not measured: malloc is in ") {
				t.Errorf("in a process whose malloc is another one: %v", err)
			}
			continue
		}
		if row.Apart {
			t.Errorf("%s is apart", row.Name)
		}
		round(t, row, 100)
	}
}

// TestWrite checks that each page of a block has a byte, and no byte behind it.
func TestWrite(t *testing.T) {
	for _, size := range []int{1, 64, pageSize, pageSize + 1, 64 << 10} {
		block := make([]byte, size+pageSize)
		write(unsafe.Pointer(unsafe.SliceData(block)), size)
		written := 0
		for i, b := range block {
			if b != 0 {
				written++
				if i >= size || i%pageSize != 0 {
					t.Errorf("a block of %d bytes was written to at %d", size, i)
				}
			}
		}
		if want := (size + pageSize - 1) / pageSize; written != want {
			t.Errorf("a block of %d bytes has %d bytes that were written, want %d", size, written, want)
		}
	}
}
