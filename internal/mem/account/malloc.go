package account

// A Malloc is what package libc knows of the malloc of the program. Its methods may be called from
// any goroutine, with no lock held that a release needs: they take the locks of malloc.
type Malloc interface {
	// Read returns the bytes in blocks that are in use, and the bytes that malloc has from the system
	// beside them, some of which may not be resident. ok is false if that is not known.
	Read() (used, free int64, ok bool)

	Trim()       // gives free memory back to the system
	Arenas() int // how many arenas there are, 0 if that is not known
}

// A Keeper is a Malloc that can keep memory that is freed until Trim is called.
type Keeper interface {
	// Keep says how many bytes it keeps in each arena. With 0 it gives memory back by itself again.
	Keep(bytes int64)
}

// An ArenaReader is a Malloc that can say what each of its arenas has. That takes the lock of one arena
// after the other, while its free blocks are counted.
type ArenaReader interface {
	// ReadArenas returns the arenas, the first one at the front, or nil if they are not known.
	ReadArenas() []Arena
}

// An Arena is what an arena of malloc has, in bytes.
type Arena struct {
	System int64 // taken from the system and not given back
	Free   int64 // of these, in free blocks. Some of it may not be resident
	Blocks int64 // how many free blocks there are
}

// SetMalloc is called by package libc when it is initialized.
func (l *Ledger) SetMalloc(m Malloc) { l.malloc.Store(&m) }

// Malloc returns the malloc of the program, or nil if package libc is not there.
func (l *Ledger) Malloc() Malloc {
	if m := l.malloc.Load(); m != nil {
		return *m
	}
	return nil
}

// SetGivesBack says whether package giveback has malloc give back what was free for a second.
func (l *Ledger) SetGivesBack(yes bool) { l.givesBack.Store(yes) }

// GivesBack reports what SetGivesBack has said last.
func (l *Ledger) GivesBack() bool { return l.givesBack.Load() }

// BoundArenas says that the program has bounded the number of malloc's arenas.
func (l *Ledger) BoundArenas() { l.arenasBounded.Store(true) }

// ArenasBounded reports whether it has.
func (l *Ledger) ArenasBounded() bool { return l.arenasBounded.Load() }
