//go:build !cheap_check

package cheap

import "unsafe"

// debugging says whether blocks are filled with a pattern while they are free.
const debugging = false

func handedOut(p, size uintptr, fresh bool) {}

func (h *Heap) givenBack(ptr unsafe.Pointer) {}

func poison(p, size uintptr) {}
