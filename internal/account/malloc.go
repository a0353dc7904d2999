package account

import (
	"bytes"
	"strconv"
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

// Resident returns the resident bytes that a statm file of Linux says, and how many of them are pages
// of files: 0 if it does not say.
func Resident(statm []byte, page int64) (all, file int64) {
	fields := bytes.Fields(statm) // size, resident, shared, …
	if len(fields) < 3 {
		return 0, 0
	}
	all, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0, 0
	}
	file, err = strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0, 0
	}
	return all * page, file * page
}
