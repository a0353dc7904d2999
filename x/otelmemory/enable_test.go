package otelmemory

import (
	"errors"
	"testing"
)

// TestEnable looks whether Enable says what the program has.
func TestEnable(t *testing.T) {
	defer Disable()
	for range 2 {
		if err := Enable(); (err == nil) != supported || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("supported is %v, and Enable returns %v", supported, err)
		}
	}
	if alloc, free := Attached(); alloc || free {
		t.Error("a tracer is attached")
	}
}
