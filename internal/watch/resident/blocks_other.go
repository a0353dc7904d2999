//go:build !linux

package resident

import "github.com/cheapgo/cheap/internal/watch/procfs"

type blocks struct {
	pid      int
	goThread uint64
	arenas   map[uint64]bool
	unread   bool
}

func (*blocks) in(*procfs.Mapping, uint64) (f ofMalloc) { return f }

func (*blocks) tasks() map[uint64]bool { return nil }

func (*blocks) threads(*Mappings, string, map[uint64]bool) []Threads { return nil }

func (*blocks) close() {}

func goThread() uint64 { return 0 }
