package resident

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestOf reads the memory of this process by its number.
func TestOf(t *testing.T) {
	res, err := Of(os.Getpid())
	testcall.Must(t, err)
	defer res.Close()
	if n, err := res.Bytes(); err != nil || n < 64<<10 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := Of(1 << 30); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a process that does not exist: %v", err)
	}
}

// TestResident holds the figure to memory that is touched in between.
func TestResident(t *testing.T) {
	res, err := Self()
	testcall.Must(t, err)
	defer res.Close()
	before, err := res.Bytes()
	testcall.Must(t, err)
	const size = 64 << 20
	// Not Go memory, of which the race detector keeps a shadow.
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	testcall.Must(t, err)
	defer syscall.Munmap(mem)
	for i := 0; i < size; i += 4096 {
		mem[i] = 1
	}
	after, err := res.Bytes()
	testcall.Must(t, err)
	// Other goroutines of the test binary may allocate, or give back, some.
	if grown := after - before; grown < size-size/4 || grown > size+size/4 {
		t.Errorf("touching %d bytes made %d resident", size, grown)
	}
	if n := testing.AllocsPerRun(10, func() { res.Bytes() }); n != 0 {
		t.Errorf("reading allocates %v times, which would count itself", n)
	}
}
