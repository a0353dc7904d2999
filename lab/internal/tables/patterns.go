package tables

import (
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// Patterns is the table of two ways in which programs use blocks.
func Patterns() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "patterns",
			Title: "Blocks replaced among many, and handed over",
			About: "Replace: 4,096 blocks of 16 to 1,024 bytes are live, and one after the other, in random order, is freed and replaced by another, whose first and last byte are written. " +
				"Handover: one goroutine allocates 4,096 blocks of 64 bytes, and another one frees them. " +
				"native is C's malloc called from a loop in C, libc the same malloc called from Go. No source has figures.",
			Unit:  "block",
			Chart: result.Bars,
		},
		Rows:  patternRows(),
		Named: true,
	}
}
