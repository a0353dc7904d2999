package tables

import (
	"runtime"
	"testing"
)

func TestPatterns(t *testing.T) {
	table := Patterns()
	wantNames(t, table, []string{"replace-native", "replace-heap", "replace-local", "handover-libc", "handover-heap"}[:len(table.Rows)])
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, row := range table.Rows {
		round(t, row, 10_000)
	}
}

// TestTail times some calls. The slowest take longer than others.
func TestTail(t *testing.T) {
	for _, row := range Tail().Rows {
		w, err := row.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		wall, _, err := w.Time(2000)
		if f := w.Figures(); err != nil || f.P99 <= 0 || f.P999 < f.P99 || wall < 20*f.P99 {
			t.Errorf("%s: %v ns, %+v, %v", row.Name, wall, f, err)
		}
		w.Close()
	}
}

func TestArenas(t *testing.T) {
	for _, row := range Arenas().Rows {
		round(t, row, row.N)
	}
}
