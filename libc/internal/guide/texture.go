//go:build cgo

package guide

// #include "library.h"
import "C"

import "github.com/cheapgo/cheap/own"

// A Texture is a number. It is deleted by the thread of the program's loop.
type Texture struct{ n own.Number[C.uint] }

// Wake gets a value when textures wait for Paint.
var Wake = make(chan struct{}, 1)

var queue = own.NewQueue(0, Wake) // releases wait for Queue.Drain

var textures = own.NewPool(own.Options{
	Name: "Texture", Numbers: true,
	Release: deleteTextures,
	Run:     queue.Run(),
})

// Strangers is the number of calls by other threads.
var Strangers int

func deleteTextures(_ any, resources []uintptr) error {
	for _, r := range resources {
		Strangers = int(C.texture_delete(C.uint(r)))
	}
	return nil
}

// NewTexture is called on the thread of the loop.
func NewTexture() (*Texture, error) {
	t := new(Texture)
	return t, t.n.Own(textures, C.texture_new(), 4<<20)
}

// Close may be called anywhere. The texture is deleted by the next Paint.
func (t *Texture) Close() error { return t.n.Close() }

// Paint is a turn of the loop. It deletes what was closed and what was forgotten.
func Paint() (deleted int) { return queue.Drain(0) }
