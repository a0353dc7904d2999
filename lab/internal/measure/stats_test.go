package measure

import "testing"

func TestSummarize(t *testing.T) {
	if c, lo, hi := Summarize([]float64{3, 1, 2}); c != 2 || lo != 0 || hi != 0 {
		t.Errorf("of three: %v, %v to %v", c, lo, hi)
	}
	if c, lo, hi := Summarize([]float64{6, 1, 2, 3, 5, 4}); c != 3.5 || lo != 1 || hi != 6 {
		t.Errorf("of six: %v, %v to %v", c, lo, hi)
	}
}
