package resident

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// TestUnread looks for headers when no more may be read, and in memory that is gone.
func TestUnread(t *testing.T) {
	t.Parallel()
	text, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	testcall.Must(t, err)
	defer func() {
		testcall.Want(t, unix.Munmap(text))
	}()
	text[0] = 1
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(text)))) // only the number is used
	m := &procfs.Mapping{Start: at, End: at + 1<<20, Resident: 4096, Read: true, Write: true}
	b := blocks{pid: os.Getpid()}
	defer b.close()
	if strconv.IntSize != 64 {
		if b.in(m, m.End); b.unread || b.reads != 0 {
			t.Errorf("headers of 64 bits are looked for in a process of 32: %d reads", b.reads)
		}
		return
	}
	if b.in(m, m.End); b.unread || b.reads == 0 {
		t.Errorf("after %d reads: %v", b.reads, b.unread)
	}
	b.reads = mostReads
	if b.in(m, m.End); !b.unread {
		t.Error("nothing says that headers were not read")
	}
	gone := blocks{pid: os.Getpid()}
	var words [2]uint64
	if gone.read(8, words[:]) || gone.unread {
		t.Errorf("page 0: %v", gone.unread)
	}
}

// TestEndedMeanwhile has a process that ends when the list of its mappings was read, and before the headers of malloc were. One of
// the mappings begins where an arena could. What was not read is not taken for free memory of malloc.
func TestEndedMeanwhile(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	testcall.Must(t, err)
	c := exec.Command(self, "-test.run=^$")
	testcall.Want(t, c.Start())
	defer c.Wait()
	testwait.Until(t, "a process has ended", func() bool { return !hasMemory(c.Process.Pid) })
	list := filepath.Join(t.TempDir(), "smaps")
	testcall.Want(t, os.WriteFile(list, []byte("7f0000000000-7f0003000000 rw-p 0 00:00 0\nRss: 49152 kB\nAnonymous: 49152 kB\n"), 0o600))
	for pid, want := range map[int]bool{os.Getpid(): true, c.Process.Pid: false} {
		f, err := os.Open(list)
		testcall.Must(t, err)
		b := blocks{pid: pid}
		p := Classifier{Malloc: b.in}
		if m := p.sumWith(&b, f); (m != nil) != want {
			t.Errorf("%+v", m)
		}
		f.Close()
	}
}

// TestBlocksAmongOthers lays out a mapping that the kernel has joined: blocks of malloc of which half is
// resident, and memory of others, resident or not, before and between them.
func TestBlocksAmongOthers(t *testing.T) {
	t.Parallel()
	if strconv.IntSize != 64 {
		return // headers are looked for in processes of 64 bits
	}
	page := unix.Getpagesize()
	const pages = 2000
	text, err := unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	testcall.Must(t, err)
	defer func() {
		testcall.Want(t, unix.Munmap(text))
	}()
	if err := unix.Madvise(text, unix.MADV_NOHUGEPAGE); err != nil && err != unix.EINVAL { // no such kernel
		t.Fatal(err)
	}
	resident := 0
	touch := func(at, n int) {
		resident += n
		for i := range n {
			text[(at+i)*page+16] = 1
		}
	}
	block := func(at, n int) int64 {
		touch(at, n/2)
		binary.NativeEndian.PutUint64(text[at*page+8:], uint64(n*page)|isMmapped)
		return int64(n * page)
	}
	touch(3, 5) // of others
	want := block(100, 40) + block(140, 2)
	touch(150, 60)
	want += block(1300, 600)
	start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(text)))) // only the number is used
	m := &procfs.Mapping{Start: start, End: start + uint64(len(text)), Resident: int64(resident * page), Read: true, Write: true}
	b := blocks{pid: os.Getpid()}
	defer b.close()
	if of := b.in(m, m.End); of.blocks != want || !of.sure {
		t.Errorf("%+v, want %d bytes in blocks", of, want)
	}
	// A part of a block is locked, so it is a mapping of its own.
	parts := blocks{pid: os.Getpid()}
	defer parts.close()
	var sum int64
	from := start
	for _, to := range []uint64{start + uint64(110*page), start + uint64(125*page), m.End} {
		sum += parts.in(&procfs.Mapping{Start: from, End: to, Resident: int64(page), Read: true, Write: true}, m.End).blocks
		from = to
	}
	if sum != want {
		t.Errorf("%d bytes in blocks that lie in three mappings, want %d", sum, want)
	}
	in := make([]byte, pages)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(start), uintptr(len(text)), uintptr(unsafe.Pointer(unsafe.SliceData(in)))); errno != 0 {
		t.Fatal(errno)
	}
	now := 0
	for _, x := range in {
		now += int(x & 1)
	}
	if now > resident {
		t.Errorf("%d pages are resident after the look, %d before", now, resident)
	}
}

// TestThreads looks for the record of a thread in the end of a stack, and at the threads of this process.
func TestThreads(t *testing.T) {
	t.Parallel()
	if strconv.IntSize != 64 {
		return
	}
	m := &Mappings{files: []procfs.Mapping{{Start: 0x1000000, End: 0x1001000, Exec: true, Name: "/lib/a.so"}, {Start: 0x1001000, End: 0x1002000, Name: "/lib/a.so"}}}
	const next, function, arg, meant = 0x7f0000000040, 0x1000010, 99, 0x1000020
	for _, row := range []struct {
		name  string
		words map[int]uint64
		want  [3]uint64
	}{
		{"a thread", map[int]uint64{10: next, 11: next + 8, 12: 7, 40: function + 0x1000, 50: function, 51: arg}, [3]uint64{7, function, arg}},
		{"begun by module cmem", map[int]uint64{2: begunMark, 3: meant, 4: 5, 10: next, 11: next, 12: 7, 50: function}, [3]uint64{7, meant, 5}},
		{"a number that is in no list", map[int]uint64{10: next, 11: 3, 12: 7, 50: function}, [3]uint64{}},
		{"a thread that has ended", map[int]uint64{10: next, 11: next, 12: 8, 50: function}, [3]uint64{}},
		{"a function that is too far", map[int]uint64{10: next, 11: next, 12: 7, 12 + mostApart: function}, [3]uint64{}},
		{"at the end", map[int]uint64{recordIn/8 - 3: next, recordIn/8 - 2: next, recordIn/8 - 1: 7}, [3]uint64{}},
	} {
		text := make([]byte, recordIn)
		for i, w := range row.words {
			binary.NativeEndian.PutUint64(text[8*i:], w)
		}
		if tid, f, a := m.record(text, map[uint64]bool{7: true}); [3]uint64{tid, f, a} != row.want {
			t.Errorf("%s: %d, %#x, %d, want %v", row.name, tid, f, a, row.want)
		}
	}
	self := ReadMappings()
	if self == nil || len(self.Threads) == 0 || self.Threads[0].By != "Go" || self.Threads[0].Count < 2 {
		t.Errorf("the threads of this test are %+v", self.Threads)
	}
}
