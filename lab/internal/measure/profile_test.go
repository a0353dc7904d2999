package measure

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/internal/result"
)

var computed uint64

// TestProfile finds the row in the labels of the profile.
func TestProfile(t *testing.T) {
	open := func(int) (Work, error) {
		return Work{Run: func(n int) {
			x := uint64(n)
			for range n {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
			computed = x
		}}, nil
	}
	const n = 20_000_000
	table := Table{
		Table: result.Table{Name: "computing"}, Profiled: true,
		Rows: []Row{{Name: "here", N: n, Open: open}},
	}
	var file bytes.Buffer
	if _, err := Run(t.Context(), []Table{table}, Options{Count: 1, Profile: &file, ProfileTime: 200 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&file)
	if err != nil || len(p.Sample) == 0 {
		t.Fatal(err, p)
	}
	for _, s := range p.Sample {
		if row := s.Label["row"][0]; row != "computing/here" {
			t.Errorf("a sample of %s", row)
		}
	}
}
