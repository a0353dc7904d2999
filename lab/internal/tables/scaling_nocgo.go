//go:build !cgo || !unix

package tables

import "github.com/cheapgo/cheap/lab/internal/measure"

// cgoPairs returns nothing: without C there is no malloc of the C library.
func cgoPairs() []measure.Row { return nil }
