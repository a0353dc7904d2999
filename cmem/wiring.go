//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import "github.com/cheapgo/cheap/internal/account"

// upward is what packages below this one call, by interfaces of their own. This file is the
// only place where package cmem gives it to them.
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
