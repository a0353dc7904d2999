// The program of docs/reference/attacks.md. It has two mistakes, one for each argument.
package main

import (
	"os"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// record copies a name into a block of C's memory, with a zero at its end.
func record(name string) unsafe.Pointer {
	p := cheap.Malloc(len(name))
	b := unsafe.Slice((*byte)(p), len(name)+1)
	copy(b, name)
	b[len(name)] = 0 // the block has no room for it
	return p
}

type session struct{ buffer unsafe.Pointer }

func open() *session { return &session{cheap.Malloc(64)} }

func (s *session) close() { cheap.Free(s.buffer) }

// note writes to the buffer of a session.
func (s *session) note(n int) { *(*int)(s.buffer) = n }

func main() {
	switch os.Args[1] {
	case "over":
		p := record("a record of 24 characters"[:24])
		cheap.Free(p)
	case "late":
		s := open()
		s.close()
		s.note(7)
		for range 200_000 { // the program goes on
			cheap.Free(cheap.Malloc(64))
		}
	}
}
