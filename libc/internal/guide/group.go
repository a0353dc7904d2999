//go:build cgo

package guide

// #include "library.h"
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own"
)

// A Table has rows of C, which point to names and cells. All of them are in one
// group, which lives as long as the table is reachable.
type Table struct {
	group *own.Group
	rows  []*C.row
}

// NewTable returns a table without rows.
func NewTable(memory *own.Memory) (*Table, error) {
	group, err := memory.NewGroup()
	return &Table{group: group}, err
}

// Add copies a row into the table's group.
func (t *Table) Add(name string, cells ...int32) error {
	row, text := cheap.New[C.row](t.group), cheap.CString(t.group, name)
	copied, err := cheap.Append(t.group, cheap.MakeSlice[int32](t.group, 0, len(cells)), cells...)
	if row == nil || text == nil || err != nil {
		return cheap.ErrNoMemory
	}
	row.name, row.cells, row.n = (*C.char)(text), (*C.int32_t)(unsafe.SliceData(copied)), C.size_t(len(copied))
	t.rows = append(t.rows, row)
	return nil
}

// Line makes C print a row.
func (t *Table) Line(i int) (line string) {
	t.group.Use(func() {
		var out [100]byte
		n := C.print_row(t.rows[i], (*C.char)(unsafe.Pointer(&out)), C.size_t(len(out)))
		line = string(out[:min(int(n), len(out)-1)])
	})
	return line
}
