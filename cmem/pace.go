//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

/*
#include "source/cmem.h"
*/
import "C"

import (
	"os"
	"sync"

	"github.com/cheapgo/cheap/internal/account"
	"github.com/cheapgo/cheap/internal/gcwatch"
)

// Package pace counts what the C heap has in use. While it runs, C tells of growth by an eventfd,
// on which a goroutine waits.
func init() {
	if off() == "" {
		account.OpenCHeap(func() (blocks, bytes int64) {
			s := read()
			return max(0, s.Mallocs-s.Frees), s.Live
		}, watch)
	}
}

var watcher struct {
	mu   sync.Mutex
	file *os.File // the eventfd. It stays open: C may be about to write to it
	on   bool     // package pace runs
	runs bool     // the goroutine runs, if only until it has seen that on is false
}

// watch starts the goroutine that waits, or ends it.
func watch(on bool) {
	w := &watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil && on {
		fd := C.cmem_growth()
		if fd < 0 {
			return // package pace still reads the bytes when it looks
		}
		w.file = os.NewFile(uintptr(fd), "eventfd")
	}
	switch {
	case on && !w.on:
		C.cmem_watch(1)
		if !w.runs {
			w.runs = true
			if gcwatch.InBubble() {
				// In a bubble of testing/synctest the goroutine would keep it from ending.
				gcwatch.Next(func() { go wait(w.file) })
			} else {
				go wait(w.file)
			}
		}
	case !on && w.on:
		C.cmem_watch(0)
		C.cmem_wake()
	}
	w.on = on && w.file != nil
}

// wait waits for growth, until package pace has stopped.
func wait(f *os.File) {
	w := &watcher
	for {
		var n [8]byte
		_, err := f.Read(n[:])
		w.mu.Lock()
		if err != nil || !w.on {
			w.runs = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		account.Refresh()
		account.Look()
	}
}
