//go:build cgo && geos

package geos

/*
#cgo LDFLAGS: -lgeos_c
#include <geos_c.h>
*/
import "C"

import (
	"context"
	"errors"
	"unsafe"

	"github.com/cheapgo/cheap/calls"
)

//go:generate go run github.com/cheapgo/cheap/calls/callgen -from geos.go -strip GEOS -o lists.go GEOSCoordSeq_getXY_r

// A Line is a sequence of points of GEOS. It is for one goroutine.
type Line struct {
	handle C.GEOSContextHandle_t
	seq    *C.GEOSCoordSequence
	n      int
}

var errGEOS = errors.New("geos: the library reports an error")

// NewLine makes a line of n points, whose coordinates f returns.
func NewLine(n int, f func(i int) XY) (*Line, error) {
	l := &Line{handle: C.GEOS_init_r(), n: n}
	l.seq = C.GEOSCoordSeq_create_r(l.handle, C.uint(n), 2)
	for i := range n {
		p := f(i)
		if l.seq == nil || C.GEOSCoordSeq_setXY_r(l.handle, l.seq, C.uint(i), C.double(p.X), C.double(p.Y)) != 1 {
			l.Close()
			return nil, errGEOS
		}
	}
	return l, nil
}

// Close destroys the line.
func (l *Line) Close() {
	C.GEOSCoordSeq_destroy_r(l.handle, l.seq)
	C.GEOS_finish_r(l.handle)
}

// An XY is the coordinates of a point.
type XY struct{ X, Y float64 }

// ReadPlain writes the coordinates to out, with a cgo call for each point.
func (l *Line) ReadPlain(out []XY) error {
	for i := range l.n {
		o := &out[i]
		if C.GEOSCoordSeq_getXY_r(l.handle, l.seq, C.uint(i), (*C.double)(&o.X), (*C.double)(&o.Y)) != 1 {
			return errGEOS
		}
	}
	return nil
}

// pointsInList is how many points ReadList records at a time.
const pointsInList = 256

// ReadList is ReadPlain with a cgo call for many points. C writes to out, which is pinned. GEOS
// refuses an index that is out of range, and these are not: the results are looked at for the
// last point of each list. A condition for each point would cost as much as the point.
func (l *Line) ReadList(ctx context.Context, out []XY) error {
	c := Calls{List: calls.Get()}
	defer c.List.Put()
	for at := 0; at < l.n; at += pointsInList {
		c.List.Reset()
		to := c.List.Pin(unsafe.Pointer(&out[at]))
		var last calls.Result
		for i := range min(pointsInList, l.n-at) {
			xy := (*XY)(unsafe.Add(to, i*int(unsafe.Sizeof(XY{}))))
			last = c.CoordSeqGetXYR(l.handle, l.seq, uint32(at+i), unsafe.Pointer(&xy.X), unsafe.Pointer(&xy.Y))
		}
		if err := c.List.Run(ctx); err != nil {
			return err
		}
		if last.Int() != 1 {
			return errGEOS
		}
	}
	return nil
}
