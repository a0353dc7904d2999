//go:build !cgo || !unix

package tables

import "github.com/cheapgo/cheap/lab/internal/measure"

func stringRows() []measure.Row { return nil }
func cgoBatches() []measure.Row { return nil }
