//go:build cgo

package libc_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/libc"
)

// TestTrim frees blocks between others that live, so that malloc does not give their memory back by
// itself.
func TestTrim(t *testing.T) {
	const n, size, part = 2000, 32 << 10, 1 << 20
	m := account.Process.Malloc()
	if _, _, ok := m.Read(); !ok {
		if runtime.GOOS == "linux" {
			t.Log("the malloc of this program is not known")
		}
		if got := libc.Trim(); got != 0 && runtime.GOOS != "linux" {
			t.Errorf("Trim() = %d", got)
		}
		return
	}
	var a libc.Allocator
	blocks := make([]unsafe.Pointer, n)
	for i := range blocks {
		blocks[i] = a.Malloc(size)
		fill(blocks[i], size, 1)
	}
	inUse, _, _ := m.Read()
	for i, p := range blocks {
		if i%100 != 0 {
			a.Free(p)
		}
	}
	used, free, _ := m.Read()
	if inUse-used < n*size/2 || free < n*size/2 {
		t.Errorf("%d bytes are in use after %d, and %d are free", used, inUse, free)
	}
	if got := libc.Trim(); got < n*size/2 {
		t.Errorf("Trim returned %d of %d bytes that are free", got, free)
	}
	if got := libc.Trim(); got > part {
		t.Errorf("the second Trim returned %d bytes", got)
	}
	for i := 0; i < n; i += 100 {
		a.Free(blocks[i])
	}
	if n := m.Arenas(); n < 1 {
		t.Errorf("%d arenas", n)
	}
}

// TestInternalLinker links a program with Go's own linker, which knows no weak symbols of C.
func TestInternalLinker(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	file := filepath.Join(t.TempDir(), "trim")
	testcall.Must(t, testchild.Build(file, nil, "-ldflags=-linkmode=internal", "./testdata/trim"))
	out, err := exec.Command(file).CombinedOutput()
	text, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	known := !bytes.Contains(text, []byte("/ld-musl-")) // the interpreter of a program with musl, which says nothing
	if want := fmt.Sprintln(known); err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}
