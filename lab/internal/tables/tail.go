package tables

import (
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// Tail is the table of how long the slowest calls take that make an object an owner.
func Tail() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "tail",
			Title: "The slowest calls that make an object an owner",
			About: "Objects with a block of C are made and forgotten, and each call of runtime.AddCleanup, or of Own, is timed by itself, with a reading of the clock. No source has figures.",
			Unit:  "call",
			Chart: result.Bars,
		},
		Rows:  tailRows(),
		Named: true,
	}
}
