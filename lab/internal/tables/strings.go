package tables

import (
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/loops"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// sourceCgoparam is the README of cgoparam.
var sourceCgoparam = result.Source{
	Name:    "cgoparam",
	Author:  "CannibalVox",
	Title:   "README of cgoparam v1.1.0, the small batch",
	Date:    "2023-04-10",
	Machine: "GOMAXPROCS 16; the README does not say more",
	URL:     "https://github.com/CannibalVox/cgoparam",
}

// Strings is the table of ways to pass a string to C.
func Strings() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "strings",
			Title: "What passing a string to C costs",
			About: "A string of so many bytes is copied to memory that C may read, passed in one cgo call, and the copy is freed; go-bytes passes the bytes of a Go slice without a copy. " +
				"The time of each row includes the call. " +
				"The rows of four parameters allocate blocks of 1, 10, 100 and 1,000 bytes and free them, without a call in between, as the source does.",
			Unit:    "call",
			Chart:   result.Bars,
			Sources: []result.Source{sourceCgoparam},
		},
		Rows: append(stringRows(), fourParameters()...),
	}
}

// fourParameters are the rows of the source's benchmark.
func fourParameters() []measure.Row {
	rows := cgoBatches()
	ours := measure.Row{
		Name: "four-parameters-arena",
		Open: func(int) (measure.Work, error) { return measure.Work{Run: loops.ArenaBatch}, nil },
	}
	if cgoHere {
		ours.Versus = "four-parameters-malloc"
	}
	rows = append(rows, ours)
	for i := range rows {
		rows[i].Group = "four-parameters"
	}
	return rows
}
