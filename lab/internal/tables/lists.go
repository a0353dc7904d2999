package tables

import (
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// Lists is the table of what a call costs that is recorded in a list.
func Lists() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "lists",
			Title: "What a call in a list costs",
			About: "A C function that adds two ints, called through cgo, and recorded in a list of so many calls that one cgo call makes (package calls). " +
				"The time is that of recording and of running the list, for each call. " +
				"In the rows of reference each call but the first has an earlier result as an argument; in those of condition the list would stop if a result were negative; " +
				"the rows of eight call a function of four ints and four doubles. With -run lists there are more sizes of them.",
			Unit:  "call",
			Chart: result.Bars,
		},
		Rows: listRows(),
	}
}
