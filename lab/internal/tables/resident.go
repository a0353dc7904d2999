package tables

import (
	"fmt"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// The objects of the table resident: large ones, as images and textures are.
const (
	LargeObjects = 512
	LargeBytes   = 256 << 10
)

// Resident is the table of what stays in memory where large C objects are forgotten.
func Resident() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "resident",
			Title: "What stays resident if C objects are forgotten",
			About: fmt.Sprintf("%d objects of %d KiB of C memory are made, written to and released, one after the other: closed at once, or forgotten, with a cleanup, with an own.Pool, and with an own.Pool and package pace. ", LargeObjects, LargeBytes>>10) +
				"Resident is the most memory of the process during that, less what it had before. " +
				"The collector does not start for C memory, so without pace the figure grows with the number of objects. No source has figures.",
			Unit:  "object",
			Chart: result.Bytes,
		},
		Rows: residentRows(),
	}
}
