package pipeline

import (
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A scope is an allocator for calls that leak. When it is closed, it frees all buffers
// that were allocated in it and not freed. TestLeaksOfArrow names functions of arrow
// 18.8.0 that leak.
type scope struct {
	mem memory.Allocator

	mu   sync.Mutex
	live map[*byte][]byte // by first byte; under mu
}

func newScope(mem memory.Allocator) *scope {
	return &scope{mem: mem, live: make(map[*byte][]byte)}
}

func (s *scope) Allocate(size int) []byte { return s.note(s.mem.Allocate(size)) }

func (s *scope) Reallocate(size int, b []byte) []byte {
	s.forget(b)
	return s.note(s.mem.Reallocate(size, b))
}

func (s *scope) Free(b []byte) {
	s.forget(b) // before another goroutine can get the same memory
	s.mem.Free(b)
}

func (s *scope) note(b []byte) []byte {
	if len(b) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.live[unsafe.SliceData(b)] = b
	}
	return b
}

func (s *scope) forget(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, unsafe.SliceData(b))
}

// close frees the buffers that are left.
func (s *scope) close() {
	for _, b := range s.live {
		s.mem.Free(b)
	}
}
