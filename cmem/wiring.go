//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"sync"

	"github.com/cheapgo/cheap/internal/mem/account"
)

// cHost has the methods of package cmem that package account calls, by an interface of its
// own. Package cmem gives it to package account in this file only.
type cHost struct{}

func init() {
	if off() == "" && rate() > 0 {
		countForPace()
	}
}

// countForPace is called when blocks are sampled: before, package account asks the allocator itself what is in use.
var countForPace = sync.OnceFunc(func() { account.Process.OpenCHeap(cHost{}) })

func (cHost) InUse() (blocks, bytes int64) {
	s := read()
	if n := unseenLately(); n > 0 {
		return liveBlocks(), s.Live + n
	}
	return max(0, s.Mallocs-s.Frees), s.Live
}

func (cHost) Watch(on bool) { listen(on) }
