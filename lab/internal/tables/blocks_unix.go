//go:build unix

package tables

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

// mappedBlocks is the way without an allocator.
func mappedBlocks() []blockWay {
	return []blockWay{{name: "mmap", note: "mmap and munmap, in pages", open: mapBlocks}}
}

func mapBlocks(size int) (measure.Work, error) {
	var did int
	var err error
	return measure.Work{
		Run: func(n int) {
			did = 0
			for range n {
				var block []byte
				block, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
				if err != nil {
					return
				}
				write(unsafe.Pointer(unsafe.SliceData(block)), size)
				if err = unix.Munmap(block); err != nil {
					return
				}
				did++
			}
		},
		Check: func(n int) error {
			if err != nil {
				return err
			}
			return allDone(did, n)
		},
	}, nil
}
