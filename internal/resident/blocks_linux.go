package resident

import (
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cheapgo/cheap/internal/procfs"
)

// blocks finds the blocks of glibc's malloc that have a mapping of their own, in a process. Such a block
// is a chunk whose two words of header say 0 and its size, a multiple of the page size, with the second
// bit set: IS_MMAPPED. The kernel joins mappings, so chunks follow each other. All of it is found by
// reading two words of each chunk; malloc takes no lock, and nothing else of the memory is looked at.
type blocks struct {
	pid   int
	reads int // so far
}

const (
	isMmapped = 2
	flagBits  = 7

	// mostReads bounds the calls of the kernel, a microsecond each.
	mostReads = 4096

	// A page that is no header may be followed by some that are: the last block was mapped by others.
	mostSkipped = 64
)

// in returns how many bytes of a mapping are such blocks.
func (b *blocks) in(m *procfs.Mapping) (n int64) {
	if m.Resident == 0 || !m.Read || strconv.IntSize != 64 {
		return 0
	}
	page := uint64(unix.Getpagesize())
	skipped := 0
	for at := m.Start; at < m.End && skipped < mostSkipped && b.reads < mostReads; {
		b.reads++
		size, ok := b.header(at)
		if !ok || size&^flagBits > m.End-at || size&^flagBits == 0 || size&flagBits != isMmapped || size&^flagBits%page != 0 {
			if m.Resident < int64(m.End-m.Start) {
				break // the page may not be there, and reading it would make it resident
			}
			at, skipped = at+page, skipped+1
			continue
		}
		at += size &^ flagBits
		n += int64(size &^ flagBits)
	}
	return n
}

// header reads the second word at an address, if the first one is 0.
func (b *blocks) header(at uint64) (size uint64, ok bool) {
	var words [16]byte
	local := []unix.Iovec{{Base: &words[0]}}
	local[0].SetLen(len(words))
	remote := []unix.RemoteIovec{{Base: uintptr(at), Len: len(words)}}
	n, err := unix.ProcessVMReadv(b.pid, local, remote, 0) // fails where the memory is gone
	if err != nil || n != len(words) || binary.NativeEndian.Uint64(words[:]) != 0 {
		return 0, false
	}
	return binary.NativeEndian.Uint64(words[8:]), true
}
