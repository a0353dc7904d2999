//go:build cgo

package guide

// #include "library.h"
import "C"

import (
	"context"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own"
)

// NewImageWithin is NewImage that a limit of package pace may refuse, before C allocates.
func NewImageWithin(ctx context.Context, width, height int) (*Image, error) {
	room, err := images.Reserve(ctx, width*height)
	if err != nil {
		return nil, err
	}
	defer room.Close() // nothing is left of it once the pool owns the image
	p := C.image_new(C.int(width), C.int(height))
	if p == nil {
		return nil, cheap.ErrNoMemory
	}
	m := new(Image)
	if err := m.h.OwnWith(images, p, own.With{Room: room}); err != nil {
		C.image_free(unsafe.Pointer(p)) // the pool does not own it
		return nil, err
	}
	return m, nil
}
