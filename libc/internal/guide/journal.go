//go:build cgo

package guide

// #include "library.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// A Journal keeps as many lines as it has room for.
type Journal struct{ h own.Handle[*C.journal] }

var journals = own.NewPool(own.Options{
	Name: "Journal", CHeap: true,
	Release: libc.StatusDestructor(unsafe.Pointer(C.journal_close), lost),
	OnReleaseError: func(e own.ReleaseError) {
		select {
		case Forgotten <- e.Err:
		default: // it must not wait
		}
	},
})

func lost(status int) error { return fmt.Errorf("%d lines are lost", status) }

// Forgotten gets the errors of journals that were not closed.
var Forgotten = make(chan error, 1)

// NewJournal returns a journal with room for some lines.
func NewJournal(room int) (*Journal, error) {
	p := C.journal_new(C.int(room))
	if p == nil {
		return nil, cheap.ErrNoMemory
	}
	j := new(Journal)
	if err := j.h.Own(journals, p, 0); err != nil {
		C.journal_close(unsafe.Pointer(p))
		return nil, err
	}
	return j, nil
}

// Write returns own.ErrClosed after Close.
func (j *Journal) Write(line string) error {
	a := cheap.GetArena()
	defer a.Put()
	return j.h.TryUse(func(p *C.journal) error {
		C.journal_write(p, (*C.char)(cheap.CString(a, line)))
		return nil
	})
}

// Close returns an error if lines were lost. The journal is freed in any case.
func (j *Journal) Close() error { return j.h.Close() }
