package account

import (
	"sync/atomic"
)

// A Malloc is what package libc knows of the malloc of the program. Its functions may be called from
// any goroutine, with no lock held that a release needs: they take the locks of malloc.
type Malloc struct {
	// Read returns the bytes in blocks that are in use, and the bytes that malloc has from the system
	// beside them, some of which may not be resident. ok is false if that is not known.
	Read func() (used, free int64, ok bool)

	Trim   func()     // gives free memory back to the system
	Arenas func() int // how many arenas there are, 0 if that is not known
}

var malloc atomic.Pointer[Malloc]

// SetMalloc is called by package libc when it is initialized.
func SetMalloc(m *Malloc) { malloc.Store(m) }

// CMalloc returns what is known of the malloc of the program, or nil.
func CMalloc() *Malloc { return malloc.Load() }

var arenasBounded atomic.Bool

// BoundArenas says that the program has bounded the number of malloc's arenas.
func BoundArenas() { arenasBounded.Store(true) }

// ArenasBounded reports whether it has.
func ArenasBounded() bool { return arenasBounded.Load() }
