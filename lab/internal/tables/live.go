package tables

import (
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// Live is the table of what live owners cost a collection.
func Live() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "live",
			Title: "What live owners cost a collection",
			About: "One collection, from its start to the end of its sweep, with so many live objects of 16 bytes that have a block of C each: plain objects, and objects whose block a finalizer, a cleanup or an own.Pool releases. No source has figures.",
			Unit:  "collection", Chart: result.Sizes, Over: "live owners",
		},
		Rows:   liveRows(),
		Weight: 1.5, // a round has some collections of a large heap
	}
}
