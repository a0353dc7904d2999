//go:build !cgo || !unix

package tables

import "github.com/cheapgo/cheap/lab/internal/measure"

// serverRows returns nothing: the rows need C.
func serverRows() []measure.Row { return nil }
