//go:build cgo

package draw

/*
#include "draw.h"
*/
import "C"

import (
	"context"
	"slices"
	"unsafe"

	"github.com/cheapgo/cheap/calls"
)

//go:generate go run github.com/cheapgo/cheap/calls/callgen -include draw.h -strip draw_ -o lists.go draw_colour draw_move draw_point

// A Canvas is a canvas of the library, for one goroutine.
type Canvas struct {
	canvas *C.draw_canvas
	calls  Calls
}

// NewCanvas returns a canvas, or nil if there is no memory.
func NewCanvas(width, height int) *Canvas {
	canvas := C.draw_new(C.int32_t(width), C.int32_t(height))
	if canvas == nil {
		return nil
	}
	return &Canvas{canvas, Calls{List: calls.New(calls.NoCallback)}}
}

// Free frees the canvas.
func (c *Canvas) Free() { C.draw_free(c.canvas) }

// Pixels returns a copy of the pixels.
func (c *Canvas) Pixels() []uint32 {
	return slices.Clone(unsafe.Slice((*uint32)(c.canvas.pixels), int(c.canvas.width)*int(c.canvas.height)))
}

// Counts returns how many calls the library had, and how many with wrong arguments.
func (c *Canvas) Counts() (calls, wrong int) { return int(c.canvas.calls), int(c.canvas.wrong) }

// CallsOfFrame is how many calls a frame of n shapes has: a colour, a place, and points.
func CallsOfFrame(n int) int { return n * (2 + points) }

const points = 8

// at returns the place of shape i in a frame, and its colour.
func at(frame, i int) (x, y float32, r, g, b uint8) {
	h := uint32(i*7919+frame*104729) * 2654435761
	return float32(h>>22) / 1024, float32(h>>12&1023) / 1024, uint8(h), uint8(h >> 8), uint8(h >> 16)
}

// DrawPlain draws n shapes with a cgo call for each call.
func (c *Canvas) DrawPlain(frame, n int) {
	for i := range n {
		x, y, r, g, b := at(frame, i)
		C.draw_colour(c.canvas, C.uint8_t(r), C.uint8_t(g), C.uint8_t(b))
		C.draw_move(c.canvas, C.float(x), C.float(y))
		for p := range int32(points) {
			C.draw_point(c.canvas, C.int32_t(p-4), C.int32_t(p*p%7-3))
		}
	}
}

// shapesInList is how many shapes DrawList records at a time: 2,500 calls, whose words fit in the
// second cache of the processor.
const shapesInList = 250

// DrawList draws n shapes by lists.
func (c *Canvas) DrawList(ctx context.Context, frame, n int) error {
	for begin := 0; begin < n; begin += shapesInList {
		c.calls.List.Reset()
		for i := begin; i < min(begin+shapesInList, n); i++ {
			x, y, r, g, b := at(frame, i)
			c.calls.Colour(c.canvas, r, g, b)
			c.calls.Move(c.canvas, x, y)
			for p := range int32(points) {
				c.calls.Point(c.canvas, p-4, p*p%7-3)
			}
		}
		if err := c.calls.List.Run(ctx); err != nil {
			return err
		}
	}
	return nil
}
