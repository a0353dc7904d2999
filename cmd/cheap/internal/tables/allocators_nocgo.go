//go:build !cgo || !unix

package tables

import "github.com/cheapgo/cheap/cmd/cheap/internal/measure"

const cgoHere = false

func (allocation) cgoRows() []measure.Row { return nil }
