//go:build linux && !cheap_gomem

package osmem

import (
	"os"
	"testing"
)

// TestRemap moves the contents of pages.
func TestRemap(t *testing.T) {
	if !CanMove() {
		if os.Getenv("CHEAP_TEST_EXEC") != "" {
			return
		}
		t.Skip("an old kernel")
	}
	size := 8 * PageSize
	var addr [2]uintptr
	for i := range addr {
		var err error
		if addr[i], err = Reserve(size, 1); err != nil {
			t.Fatal(err)
		}
	}
	from, to := addr[0], addr[1]
	if err := Commit(from, size); err != nil {
		t.Fatal(err)
	}
	for i := range mem(from, size) {
		mem(from, size)[i] = byte(i/100 + 1)
	}
	if err := Remap(from, to, size-PageSize); err != nil {
		t.Fatal(err)
	}
	for i, b := range mem(to, size-PageSize) {
		if b != byte(i/100+1) {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
	// What is left is ours still, to use again or to release.
	other, err := Reserve(size, 1)
	if err != nil {
		t.Fatal(err)
	}
	if other < from+size && from < other+size {
		t.Errorf("[%#x, %#x) was moved away and was mapped again, at %#x", from, from+size, other)
	}
	for _, a := range []uintptr{from, to, other} {
		Release(a, size)
	}
}
