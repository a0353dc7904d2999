//go:build !cgo || !unix

package tables

import "github.com/cheapgo/cheap/lab/internal/measure"

// residentRows returns nothing: the rows need C.
func residentRows() []measure.Row { return nil }
