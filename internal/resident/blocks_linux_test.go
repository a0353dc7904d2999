package resident

import (
	"os"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cheapgo/cheap/internal/procfs"
)

// TestUnread looks for headers when no more may be read, and in memory that is gone.
func TestUnread(t *testing.T) {
	t.Parallel()
	text, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(text); err != nil {
			t.Error(err)
		}
	}()
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(text)))) // only the number is used
	m := &procfs.Mapping{Start: at, End: at + 1<<20, Resident: 4096, Read: true, Write: true}
	b := blocks{pid: os.Getpid()}
	if strconv.IntSize != 64 {
		if b.in(m); b.unread || b.reads != 0 {
			t.Errorf("headers of 64 bits are looked for in a process of 32: %d reads", b.reads)
		}
		return
	}
	if b.in(m); b.unread || b.reads == 0 {
		t.Errorf("after %d reads: %v", b.reads, b.unread)
	}
	b.reads = mostReads
	if b.in(m); !b.unread {
		t.Error("nothing says that headers were not read")
	}
	gone := blocks{pid: os.Getpid()}
	var words [2]uint64
	if gone.read(8, words[:]) || gone.unread {
		t.Errorf("page 0: %v", gone.unread)
	}
}
