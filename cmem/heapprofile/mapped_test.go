package heapprofile

import "testing"

// TestLookAt has ranges that are no mapping, and parts of one.
func TestLookAt(t *testing.T) {
	all, err := LookAt(2, func(i int) (from, to uint64) { return uint64(i) * 4096, uint64(i+1) * 4096 })
	if err != nil {
		return // there is no /proc
	}
	if all[0] != (Held{}) || all[1] != (Held{}) {
		t.Errorf("%+v", all)
	}
}
