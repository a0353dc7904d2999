//go:build !cgo || !unix

package tables

import "github.com/cheapgo/cheap/cmd/cheap/internal/measure"

// cgoPairs lists the rows of the C library's malloc, of which there are none.
func cgoPairs() []measure.Row { return nil }
