package resident

import (
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cheapgo/cheap/internal/procfs"
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
	pid    int
	reads  int             // so far
	arenas map[uint64]bool // the addresses of arenas
	unread bool            // a header was not read: the kernel does not permit it, or there are too many
}

const (
	isMmapped = 2
	flagBits  = 7

	// mostReads bounds the calls of the kernel, a microsecond each.
	mostReads = 4096

	// A page that is no header may be followed by some that are: the last block was mapped by others.
	mostSkipped = 64
)

// in returns how many bytes of a mapping are in heaps of arenas, and how many are blocks.
func (b *blocks) in(m *procfs.Mapping) (f ofMalloc) {
	if m.Resident == 0 || !m.Read || !m.Write || strconv.IntSize != 64 {
		return f
	}
	from := m.Start
	for at := (m.Start + mallocArena - 1) &^ (mallocArena - 1); at < m.End; at += mallocArena {
		n := b.heap(at, m.End)
		if n == 0 {
			continue
		}
		f.arenas += int64(n)
		f.blocks += b.chunks(m, from, at)
		from = at + n
	}
	f.blocks += b.chunks(m, from, m.End)
	f.sure = !b.unread
	return f
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

// chunks returns how many bytes from one address to another are blocks.
func (b *blocks) chunks(m *procfs.Mapping, at, end uint64) (n int64) {
	page := uint64(unix.Getpagesize())
	skipped := 0
	for at < end && skipped < mostSkipped {
		var words [2]uint64
		ok := b.read(at, words[:])
		size := words[1] &^ flagBits
		if !ok || words[0] != 0 || words[1]&flagBits != isMmapped || size == 0 || size%page != 0 || size > end-at {
			if m.Resident < int64(m.End-m.Start) {
				break // the next page may not be there, and reading it would make it resident
			}
			at, skipped = at+page, skipped+1
			continue
		}
		at += size
		n += int64(size)
	}
	return n
}

// read reads words at an address. It reports false where there are none, and after many calls.
func (b *blocks) read(at uint64, words []uint64) bool {
	if b.reads++; b.reads > mostReads {
		b.unread = true
		return false
	}
	var text [32]byte
	local := []unix.Iovec{{Base: &text[0]}}
	local[0].SetLen(8 * len(words))
	remote := []unix.RemoteIovec{{Base: uintptr(at), Len: 8 * len(words)}}
	n, err := unix.ProcessVMReadv(b.pid, local, remote, 0) // fails where the memory is gone
	if err == unix.EPERM || err == unix.ENOSYS {           // by seccomp, or a setting of ptrace
		b.unread = true
	}
	if err != nil || n != 8*len(words) {
		return false
	}
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(text[8*i:])
	}
	return true
}
