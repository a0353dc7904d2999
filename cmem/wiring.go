//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import "github.com/cheapgo/cheap/internal/account"

// upward has the methods of package cmem that package account calls, by an interface of its
// own. Package cmem gives it to package account in this file only.
type upward struct{}

func init() {
	if off() == "" {
		account.Process.OpenCHeap(upward{})
	}
}

func (upward) InUse() (blocks, bytes int64) {
	s := read()
	return max(0, s.Mallocs-s.Frees), s.Live
}

func (upward) Watch(on bool) { listen(on) }
