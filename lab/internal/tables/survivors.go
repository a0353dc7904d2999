package tables

import (
	"fmt"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// The objects of the table survivors: so many are made, and of each stride one survives.
const (
	survivorObjects = 50_000
	manySurvivors   = 300_000 // of the rows that -run survivors adds
)

var strides = []int{10, 100, 1000}

// survivorCollections is how many collections the others have to be released in. Batches
// that outlive collections are split.
const survivorCollections = 12

// Survivors is the table of what objects hold that outlive others.
func Survivors() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "survivors",
			Title: "What survivors hold",
			About: fmt.Sprintf("%d objects with a block of 100 bytes of C are made, and all but one in 10, 100 or 1,000 are forgotten. ", survivorObjects) +
				fmt.Sprintf("Held is how many blocks live for each live object, %d collections later: a cleanup releases each block by itself, and an own.Pool batches of them. ", survivorCollections) +
				"The time is that of making and of the collections. " +
				fmt.Sprintf("With -run survivors there are rows of %d objects as well, and of smaller batches. No source", manySurvivors) + " has figures.",
			Unit:  "object",
			Chart: result.Held,
		},
		Rows:   survivorRows(),
		Weight: 1.5, // a round has many collections
	}
}
