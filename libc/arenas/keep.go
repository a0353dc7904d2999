package arenas

import (
	"sync"

	"github.com/cheapgo/cheap/internal/mem/giveback"
	"github.com/cheapgo/cheap/internal/watch/cgroup"
)

// KeepPages has malloc keep the pages of memory that is freed, and gives back what was free for a second, until
// stop is called. It starts a goroutine, which looks once a second.
//
// glibc gives the end of an arena back as soon as it is free, if that is more than 128 KiB to 64 MiB, and takes it
// again for the next block, page by page. A server that allocates and frees an image of 64 KiB to 4 MiB for each
// request took a quarter of the processor time with KeepPages. Package pace does the same while it is started, so a
// program that calls pace.Start does not call KeepPages.
//
// Up to 256 MiB of an arena are kept, or a 16th of the limit that the container has at the call. Nothing is kept in a
// container of less than 256 MiB; if the environment has MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, MALLOC_TOP_PAD_ or
// MALLOC_MMAP_MAX_, or a tunable of that kind; and with another malloc than glibc's. It ends the adjustment of these
// numbers by glibc: after stop an arena keeps 8 MiB.
func KeepPages() (stop func()) {
	return sync.OnceFunc(giveback.Begin(cgroup.Limit("/"), true).End)
}
