//go:build cgo && unix

package tables

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestSurvivors does short rounds, and looks at what the survivors hold: with a cleanup
// nothing but what is theirs, with a pool the blocks of at most a few others.
func TestSurvivors(t *testing.T) {
	for _, row := range Survivors().Rows {
		w, err := row.Open(1)
		testcall.Must(t, err)
		const n = 5000
		for range 2 {
			w.Run(n)
			if err := w.Check(n); err != nil {
				t.Errorf("%s: %v", row.Name, err)
			}
			// A pool's batch has 256 owners until it is split, which takes collections
			// that are late on a busy machine.
			least, most := 1.0, 1.0
			if strings.HasPrefix(row.Name, "own") {
				least, most = 1.5, 256
				if strings.Contains(row.Name, "batch") {
					least = 1
				}
			}
			if held := w.Figures().Held; held < least || held > most {
				t.Errorf("%s: a survivor holds %v blocks, want %v to %v", row.Name, held, least, most)
			}
		}
	}
}

// TestServer serves some requests in each way. Nothing is collected during them, except by
// package pace.
func TestServer(t *testing.T) {
	most := make(map[string]int64)
	for _, row := range Server().Rows {
		w, err := row.Open(2)
		testcall.Must(t, err)
		for range 2 {
			const n = 100
			goOn := settled(row)
			wall, cpu, err := w.Time(n)
			goOn()
			if err != nil || wall <= 0 || cpu <= 0 {
				t.Errorf("%s: %v ns, %v of the processor, %v", row.Name, wall, cpu, err)
			}
			if p99 := w.Figures().P99; p99 <= 0 || p99 > wall {
				t.Errorf("%s: p99 is %v ns of %v", row.Name, p99, wall)
			}
		}
		most[row.Name] = w.Figures().Resident
		w.Close()
	}
	// A hundred images have 34 MiB on average.
	if most["own"] > 0 && (most["close"] > most["own"]/2 || most["addcleanup"] < 16<<20) {
		t.Errorf("resident: %v", most)
	}
}
