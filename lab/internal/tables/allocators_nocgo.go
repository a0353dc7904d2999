//go:build !cgo || !unix

package tables

import "github.com/cheapgo/cheap/lab/internal/measure"

const cgoHere = false

// HasC says that this build has the rows that call C.
const HasC = cgoHere

func (allocation) cgoRows() []measure.Row { return nil }
