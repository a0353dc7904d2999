package resident

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// blocks finds what glibc's malloc has of a mapping without a name, in a process. The kernel joins mappings,
// so a mapping may have memory of malloc and of others, in any order. Two things have a header:
//
//   - Each arena but the first has heaps of up to 64 MiB, aligned to 64 MiB. A heap begins with the address of
//     its arena, that of the heap before it, its size, and how much of it is accessible.
//   - A block with a mapping of its own is a chunk whose two words of header say 0 and its size, a multiple of
//     the page size, with the second bit set: IS_MMAPPED. Chunks may follow each other.
//
// Headers are read by the kernel. malloc takes no lock, and nothing else of the memory is looked at.
type blocks struct {
	pid      int
	goThread uint64          // the number of a thread that Go has begun, or 0
	reads    int             // so far
	arenas   map[uint64]bool // the addresses of arenas
	unread   bool            // a header was not read: the kernel does not permit it, or there are too many

	// What began in a mapping and goes on in the next ones, which differ in how they are locked or advised.
	until   uint64 // where it ends
	isArena bool   // it is the heap of an arena, and else a block

	// What the kernel says of some pages, eight bytes each.
	pagemap *os.File // /proc/PID/pagemap, once it is needed
	pages   [4096]byte
	first   uint64 // the number of the first page
	known   int    // how many there are

	remote [pagesAtOnce]unix.RemoteIovec
}

const (
	isMmapped = 2
	flagBits  = 7

	// mostReads bounds the calls of the kernel, a microsecond each and a tenth for each page.
	mostReads   = 4096
	pagesAtOnce = 64

	// Between blocks there may be memory of others. After so many of its resident pages, 16 MiB, the rest of a
	// mapping is taken for theirs.
	mostSkipped = 4096
)

// in returns how many bytes of a mapping are in heaps of arenas, and how many are blocks. Mappings come in the order of
// addresses; end is where the last of those ends that follow each other without a gap.
func (b *blocks) in(m *procfs.Mapping, end uint64) (f ofMalloc) {
	from := m.Start
	if n := min(b.until, m.End); n > from {
		if b.isArena {
			f.arenas = int64(n - from)
		} else {
			f.blocks = int64(n - from)
		}
		from = n
	}
	if m.Resident == 0 || !m.Read || !m.Write || strconv.IntSize != 64 {
		return f
	}
	all := m.Resident == int64(m.End-m.Start)
	var one [1]uint64
	for at := (from + mallocArena - 1) &^ (mallocArena - 1); at < m.End; at += mallocArena {
		if len(b.resident(one[:0], 1, at, at+1, all)) == 0 {
			continue
		}
		n := b.heap(at, end)
		if n == 0 {
			continue
		}
		f.blocks += b.chunks(from, at, at, all)
		from = b.take(at+n, m.End, true)
		f.arenas += int64(from - at)
	}
	f.blocks += b.chunks(from, m.End, end, all)
	f.sure = !b.unread
	return f
}

// take returns where what ends at until ends in a mapping, and notes what goes on behind that.
func (b *blocks) take(until, end uint64, isArena bool) uint64 {
	if until <= end {
		return until
	}
	b.until, b.isArena = until, isArena
	return end
}

// heap returns how many bytes below end are in the heap of an arena that begins at an address, or 0.
func (b *blocks) heap(at, end uint64) uint64 {
	var words [4]uint64 // the arena, the heap before, size, accessible size
	page := uint64(unix.Getpagesize())
	if !b.read(at, words[:]) || words[0] == 0 || words[0]%8 != 0 || words[1]%mallocArena != 0 {
		return 0
	}
	size, accessible := words[2], words[3]
	if size == 0 || size%page != 0 || size > accessible || accessible%page != 0 || accessible > mallocArena {
		return 0
	}
	if b.arenas == nil {
		b.arenas = map[uint64]bool{}
	}
	b.arenas[words[0]] = true
	return min(accessible, end-at)
}

// chunks returns how many bytes from one address to another are blocks, which may go on to last. all says that each page
// is resident. After a page that is no header it looks at more of them at a time.
func (b *blocks) chunks(at, end, last uint64, all bool) (n int64) {
	page := uint64(unix.Getpagesize())
	pages := make([]uint64, 0, pagesAtOnce)
	var headers [pagesAtOnce][2]uint64
	for most, skipped := 1, 0; skipped < mostSkipped; {
		if pages = b.resident(pages[:0], most, at, end, all); len(pages) == 0 {
			break
		}
		most = min(2*most, pagesAtOnce)
		found, read := false, b.readAll(pages, &headers)
		for i := range read {
			size := headers[i][1] &^ flagBits
			if headers[i][0] == 0 && headers[i][1]&flagBits == isMmapped && size != 0 && size%page == 0 && size <= last-pages[i] {
				at, most, found = b.take(pages[i]+size, end, false), 1, true
				n += int64(at - pages[i])
				break
			}
		}
		if !found {
			at = pages[min(read, len(pages)-1)] + page // the first that was not read is gone, those behind it may be there
			skipped += min(read+1, len(pages))
		}
	}
	return n
}

// resident appends the addresses of up to most pages from an address on. Unless all pages are resident it leaves
// out those that are not: reading them would make them resident. One page alone, which is likely a header, may be
// swapped out.
func (b *blocks) resident(to []uint64, most int, at, end uint64, all bool) []uint64 {
	bits := uint64(1 << 63) // resident
	if most == 1 {
		bits |= 1 << 62 // swapped out
	}
	page := uint64(unix.Getpagesize())
	for ; at < end && len(to) < most; at += page {
		i := at/page - b.first
		if !all && i >= uint64(b.known) {
			if b.known = b.look(at / page); b.known == 0 {
				break
			}
			b.first, i = at/page, 0
		}
		if all || binary.NativeEndian.Uint64(b.pages[8*i:])&bits != 0 {
			to = append(to, at)
		}
	}
	return to
}

// look reads from /proc/PID/pagemap what is said of pages from one on, and returns how many.
func (b *blocks) look(first uint64) int {
	if b.pagemap == nil {
		file, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", b.pid))
		if err != nil {
			b.unread = true
			return 0
		}
		b.pagemap = file
	}
	if b.reads++; b.reads > mostReads {
		b.unread = true
		return 0
	}
	n, _ := b.pagemap.ReadAt(b.pages[:], int64(8*first)) // at the end of the addresses it is less, with io.EOF
	if n < 8 {
		b.unread = true
	}
	return n / 8
}

// read reads words at an address. It reports false where there are none, and after many calls.
func (b *blocks) read(at uint64, words []uint64) bool {
	text := make([]byte, 8*len(words))
	if b.readTexts([]uint64{at}, text) != 1 {
		return false
	}
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(text[8*i:])
	}
	return true
}

// readAll reads two words at the start of each page, and returns of how many.
func (b *blocks) readAll(pages []uint64, to *[pagesAtOnce][2]uint64) int {
	var text [16 * pagesAtOnce]byte
	n := b.readTexts(pages, text[:16*len(pages)])
	for i := range n {
		to[i] = [2]uint64{binary.NativeEndian.Uint64(text[16*i:]), binary.NativeEndian.Uint64(text[16*i+8:])}
	}
	return n
}

// readTexts reads the same number of bytes at each address, and returns at how many it has: all before the first
// that is not accessible.
func (b *blocks) readTexts(at []uint64, to []byte) int {
	if b.reads++; b.reads > mostReads {
		b.unread = true
		return 0
	}
	each := len(to) / len(at)
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(len(to))
	remote := b.remote[:len(at)]
	for i := range at {
		remote[i] = unix.RemoteIovec{Base: uintptr(at[i]), Len: each}
	}
	n, err := unix.ProcessVMReadv(b.pid, local, remote, 0) // fails where the memory is gone
	if err == unix.EPERM || err == unix.ENOSYS {           // by seccomp, or a setting of ptrace
		b.unread = true
	}
	return max(0, n) / each
}

func (b *blocks) close() {
	if b.pagemap != nil {
		b.pagemap.Close()
	}
}
