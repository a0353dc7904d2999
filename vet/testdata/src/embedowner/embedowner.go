package embedowner

/*
struct image;
*/
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap/own"
)

type Image struct {
	own.Handle[unsafe.Pointer] // want `the struct embeds an own.Handle and exports its methods, Disown among them: write a field that is not exported: h own.Handle\[unsafe.Pointer\]`
	width                      int
}

type Texture struct {
	*own.Number[uint32] // want `embeds an own.Number .*: n \*own.Number\[uint32\]`
}

type block struct {
	// A comment.
	own.Number[int] `json:"-"` // want `embeds an own.Number .*: n own.Number\[int\]`
}

type oneLine struct{ own.Number[int] } // want `embeds an own.Number`

func local() any {
	type inner struct {
		own.Number[int] // want `embeds an own.Number`
	}
	var list []struct{ own.Number[int] } // want `embeds an own.Number`
	return []any{inner{}, list}
}

// Aliases are looked through, in other packages as well.

type (
	handle           = own.Handle[unsafe.Pointer]
	generic[P any]   = own.Handle[P]
	again            = handle
	throughAlias     struct{ handle }                  // want `embeds an own.Handle .*: h handle`
	throughGeneric   struct{ generic[unsafe.Pointer] } // want `embeds an own.Handle`
	throughTwo       struct{ again }                   // want `embeds an own.Handle`
	throughPointer   struct{ *again }                  // want `embeds an own.Handle`
	parameter[P any] struct {
		own.Handle[P] // want `embeds an own.Handle`
	}
)

// A type of C is not known, and so the instance is not.

type (
	image      = own.Handle[*C.struct_image]
	ofC        struct{ own.Handle[*C.struct_image] } // want `embeds an own.Handle`
	ofCByAlias struct{ image }                       // want `embeds an own.Handle`
)

// Fields with names, types without the methods, and other types.

type (
	Good struct {
		h     own.Handle[*C.struct_image]
		n     own.Number[uint32]
		owner own.Owner
		list  []own.Handle[*C.struct_image]
	}
	defined own.Number[int]
	without struct{ defined }
	outer   struct{ Image } // Image was reported
	pool    struct{ *own.Pool }
	parent  struct{ own.Owner }
	other   struct{ Owner }
	Owner   struct{}
)

type wanted struct {
	own.Number[int] //cheapvet:ignore embedowner a test calls all methods
}
