// The program of docs/reference/attacks.md about guard pages. It makes the mistake that its argument
// names.
package main

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/inspect"
)

// writeInC writes a byte in C code; nil without cgo.
var writeInC func(p unsafe.Pointer)

type session struct{ buffer *[64]byte }

func open() *session { return &session{(*[64]byte)(cheap.Malloc(64))} }

func (s *session) close() { cheap.Free(unsafe.Pointer(s.buffer)) }

// handle serves a request of a session.
func handle(s *session) { s.buffer[8] = 7 }

func main() {
	if err := inspect.Monitor(nil); err != nil {
		fmt.Println(err)
	}
	s := open()
	s.close()
	switch os.Args[1] {
	case "guard":
		if err := inspect.Guard(func() { handle(s) }); err != nil {
			fmt.Println("the request has failed:", err)
		}
	case "monitor":
		handle(s)
	case "c":
		writeInC(unsafe.Pointer(s.buffer))
	case "panic":
		panic("of the program")
	}
}
