//go:build linux && cgo

//cheapvet:ignore perobject this is what owners are compared with

package main

/*
#include <stdlib.h>
#include <string.h>

// object_new returns memory that is written.
static void *object_new(size_t bytes) {
	void *p = malloc(bytes);
	return p ? memset(p, 1, bytes) : NULL;
}
*/
import "C"

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"github.com/cheapgo/cheap"
	_ "github.com/cheapgo/cheap/cmem" // switched off but for one way
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/libc/arenas" // the user's variable wins: see way.env
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// A way is one of those to free objects.
type way struct {
	name, title string
	cleanup     bool // by runtime.AddCleanup; else by own
	byHand      bool // when the request ends
	pace        bool // with the limit of the container
	reserve     bool // room is asked for before C allocates
	arenas      bool // malloc's arenas are bounded; else malloc is as usual
	keeps       bool // malloc keeps what is freed, by arenas.KeepPages
	unlimited   bool // pace has no limit
	cmem        bool // package cmem counts the C heap
}

var ways = []way{
	{name: "cleanup", title: "runtime.AddCleanup", cleanup: true},
	{name: "close", title: "closed by hand", byHand: true},
	{name: "arenas", title: "closed by hand, arenas bounded", byHand: true, arenas: true},
	{name: "keep", title: "closed by hand, arenas bounded, KeepPages", byHand: true, arenas: true, keeps: true},
	{name: "own", title: "own and pace", pace: true, arenas: true},
	{name: "nolimit", title: "own and pace without a limit", pace: true, arenas: true, unlimited: true},
	{name: "reserve", title: "own and pace, with Reserve", pace: true, arenas: true, reserve: true},
	{name: "unbound", title: "own and pace, arenas as usual", pace: true},
	{name: "cmem", title: "AddCleanup, cmem and pace", cleanup: true, pace: true, arenas: true, cmem: true},
}

func find(name string) *way {
	for i := range ways {
		if ways[i].name == name {
			return &ways[i]
		}
	}
	return nil
}

// env returns the environment of a process in which w runs.
func (w *way) env() []string {
	env := os.Environ()
	if !w.cmem {
		env = append(env, "CHEAP_CMEM=off")
	}
	if !w.arenas && os.Getenv("MALLOC_ARENA_MAX") == "" {
		env = append(env, "MALLOC_ARENA_MAX="+strconv.Itoa(8*runtime.NumCPU())) // glibc's own number
	}
	return env
}

// An object is in C memory.
type object struct {
	handle own.Handle[unsafe.Pointer] // not with a cleanup
	c      unsafe.Pointer
}

var pool = own.NewPool(own.Options{Name: "object", CHeap: true, Release: libc.Destructor(unsafe.Pointer(C.free))})

// factor is what the declared sizes are multiplied with: a program may not know them.
var factor = 1.0

// make makes an object of so many bytes. It fails if there is no room.
func (w *way) make(size int) (*object, error) {
	declared := int(float64(size) * factor)
	o := new(object)
	var room own.Room
	if w.reserve {
		var err error
		if room, err = pool.Reserve(context.Background(), declared); err != nil {
			return nil, err
		}
		defer room.Close() // of what was not needed
	}
	if o.c = C.object_new(C.size_t(size)); o.c == nil {
		return nil, cheap.ErrNoMemory
	}
	var err error
	switch {
	case w.cleanup:
		runtime.AddCleanup(o, func(p unsafe.Pointer) { C.free(p) }, o.c)
	case w.reserve:
		err = o.handle.OwnWith(pool, o.c, own.With{Room: room})
	default:
		err = o.handle.Own(pool, o.c, declared)
	}
	if err != nil {
		C.free(o.c)
		return nil, err
	}
	return o, nil
}

// drop closes an object, or does nothing: it is forgotten.
func (w *way) drop(o *object) {
	if w.byHand {
		o.handle.Close()
	}
}

// start starts package pace, for w.
func (w *way) start() error {
	if w.keeps {
		arenas.KeepPages()
	}
	if !w.pace {
		return nil
	}
	return pace.Start(pace.Options{LimitFromEnvironment: !w.unlimited})
}
