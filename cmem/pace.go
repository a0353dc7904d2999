//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

/*
#include "source/cmem.h"
*/
import "C"

import (
	"os"
	"sync"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
)

// Package pace counts what the C heap has in use. While it runs, C tells of growth by a timer,
// on which a goroutine waits.

var listener struct {
	mu   sync.Mutex
	file *os.File // the timer. It stays open: C may be about to set it
	on   bool     // package pace runs
	runs bool     // the goroutine runs; if on is false it is about to end
}

// listen starts the goroutine that waits, or ends it.
func listen(on bool) {
	l := &listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil && on {
		fd := C.cmem_growth_open()
		if fd < 0 {
			return // package pace still reads the bytes at each of its checks
		}
		l.file = os.NewFile(uintptr(fd), "timerfd")
	}
	switch {
	case on && !l.on:
		C.cmem_growth_enable(1)
		if !l.runs {
			l.runs = true
			if gcwatch.InBubble() {
				// In a bubble of testing/synctest the goroutine would keep it from ending.
				gcwatch.Next(func() { go wait(l.file) })
			} else {
				go wait(l.file)
			}
		}
	case !on && l.on:
		C.cmem_growth_enable(0)
		C.cmem_growth_wake()
	}
	l.on = on && l.file != nil
}

// wait waits for growth, until package pace has stopped.
func wait(f *os.File) {
	l := &listener
	for {
		var n [8]byte
		_, err := f.Read(n[:])
		l.mu.Lock()
		if err != nil || !l.on {
			l.runs = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		account.Process.Refresh()
		account.Process.Check()
	}
}
