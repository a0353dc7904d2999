//go:build cgo && osmesa

package mesa

/*
#cgo pkg-config: osmesa
#include <GL/osmesa.h>
#include <stdlib.h>
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cheapgo/cheap/calls"
)

//go:generate go run github.com/cheapgo/cheap/calls/callgen -from mesa.go -strip gl -o lists.go glClear glBegin glColor3f glVertex2f glEnd glGetError

// A Canvas is an image that OpenGL draws. All of its methods must be called by the goroutine
// that has called NewCanvas, which is locked to its thread until Close.
type Canvas struct {
	context C.OSMesaContext
	pixels  []byte // RGBA, in C memory
	calls   Calls
}

// NewCanvas makes a canvas, and locks the goroutine to its thread.
func NewCanvas(width, height int) (*Canvas, error) {
	runtime.LockOSThread()
	c := &Canvas{context: C.OSMesaCreateContext(C.OSMESA_RGBA, nil), calls: Calls{List: calls.New()}}
	memory := C.calloc(C.size_t(width*height), 4)
	c.pixels = unsafe.Slice((*byte)(memory), width*height*4)
	if c.context == nil || memory == nil || C.OSMesaMakeCurrent(c.context, memory, C.GL_UNSIGNED_BYTE, C.GLsizei(width), C.GLsizei(height)) == 0 {
		c.Close()
		return nil, errors.New("mesa: no context")
	}
	return c, nil
}

// Close frees the canvas.
func (c *Canvas) Close() {
	if c.context != nil {
		C.glFinish()
		C.OSMesaMakeCurrent(nil, nil, 0, 0, 0) // a context that is current may not be destroyed
		C.OSMesaDestroyContext(c.context)
	}
	C.free(unsafe.Pointer(unsafe.SliceData(c.pixels)))
	runtime.UnlockOSThread()
}

// Pixels returns the image. It is valid until the next frame.
func (c *Canvas) Pixels() []byte {
	C.glFinish()
	return c.pixels
}

// CallsOfFrame is how many calls a frame of n points has.
func CallsOfFrame(n int) int { return 2*n + 4 }

// at returns the place of point i in a frame, from -1 to 1, and its colour.
func at(frame, i int) (x, y, r, g, b float32) {
	h := uint32(i*7919+frame*104729) * 2654435761
	return float32(h>>22)/512 - 1, float32(h>>12&1023)/512 - 1, float32(h&255) / 255, float32(h>>8&255) / 255, float32(h>>16&255) / 255
}

// DrawPlain draws n points with a cgo call for each call of OpenGL.
func (c *Canvas) DrawPlain(frame, n int) error {
	C.glClear(C.GL_COLOR_BUFFER_BIT)
	C.glBegin(C.GL_POINTS)
	for i := range n {
		x, y, r, g, b := at(frame, i)
		C.glColor3f(C.GLfloat(r), C.GLfloat(g), C.GLfloat(b))
		C.glVertex2f(C.GLfloat(x), C.GLfloat(y))
	}
	C.glEnd()
	return glError(uint64(C.glGetError()))
}

// pointsInList is how many points DrawList records at a time.
const pointsInList = 500

// DrawList draws n points by lists.
func (c *Canvas) DrawList(ctx context.Context, frame, n int) error {
	c.calls.List.Reset()
	c.calls.Clear(C.GL_COLOR_BUFFER_BIT)
	c.calls.Begin(C.GL_POINTS)
	for i := range n {
		if i%pointsInList == pointsInList-1 {
			if err := c.calls.List.Run(ctx); err != nil {
				return err
			}
			c.calls.List.Reset()
		}
		x, y, r, g, b := at(frame, i)
		c.calls.Color3f(r, g, b)
		c.calls.Vertex2f(x, y)
	}
	c.calls.End()
	status := c.calls.GetError()
	if err := c.calls.List.Run(ctx); err != nil {
		return err
	}
	return glError(status.Uint())
}

func glError(status uint64) error {
	if status == C.GL_NO_ERROR {
		return nil
	}
	return fmt.Errorf("mesa: OpenGL reports %#x", status)
}
