package tables

import (
	"fmt"
	"testing"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

// wantFigures fails unless the rows of a table have these figures, and no other
// row has one. They are all of the table's one source.
func wantFigures(t *testing.T, table measure.Table, want map[string]float64) {
	t.Helper()
	for _, row := range table.Rows {
		ns, ok := want[row.Name]
		if !ok {
			if row.Published != nil {
				t.Errorf("%s has a figure", row.Name)
			}
			continue
		}
		delete(want, row.Name)
		if row.Published == nil {
			t.Errorf("%s has no figure, want %v", row.Name, ns)
			continue
		}
		if got := row.Published(1); len(got) != 1 || got[0].Ns != ns || got[0].Source != table.Sources[0].Name {
			t.Errorf("the figures of %s are %+v, want %v", row.Name, got, ns)
		}
	}
	if cgoHere && len(want) > 0 {
		t.Errorf("%s has no rows for %v", table.Name, want)
	}
}

// TestFigures compares with the sources, as they print them.
func TestFigures(t *testing.T) {
	sizes := make(map[string]float64)
	size := 8
	for _, pair := range [][2]float64{
		{7.476, 736.0}, {11.08, 446.9}, {13.11, 333.8}, {18.43, 258.2}, {29.68, 205.8},
		{52.06, 223.4}, {92.86, 279.9}, {177.9, 385.0}, {355.3, 589.0}, {706.9, 972.7},
	} {
		sizes[fmt.Sprintf("alloc-%d", size)], sizes[fmt.Sprintf("finalizer-%d", size)] = pair[0], pair[1]
		size *= 2
	}
	wantFigures(t, Size(), sizes)
	wantFigures(t, Allocators(), map[string]float64{
		"temporary-data-malloc": 94.58, "grow-shrink-malloc": 104.7,
		"temporary-data-cgoalloc": 9.714, "grow-shrink-cgoalloc": 34.83,
		"multilayer-temporary-data-cgoalloc": 17.06, "multilayer-grow-shrink-cgoalloc": 35.78,
		"arena-temporary-data-cgoalloc": 29.24,
	})
	wantFigures(t, Strings(), map[string]float64{"four-parameters-malloc": 374.9, "four-parameters-cgoparam": 19.74})
	wantFigures(t, Traces(), nil)
}
