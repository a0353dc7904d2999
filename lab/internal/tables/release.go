package tables

import (
	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

var sourceLemire = result.Source{
	Name:    "Lemire 2023",
	Author:  "Daniel Lemire",
	Title:   "The absurd cost of finalizers in Go",
	Date:    "2023-05-19",
	Machine: "not named; Go 1.20",
	URL:     "https://lemire.me/blog/2023/05/19/the-absurd-cost-of-finalizers-in-go/",
}

// sourceSiebenmann has no times. It confirms a factor of ten, and shows where the
// time goes by profiles and by a finalizer without a call of C.
var sourceSiebenmann = result.Source{
	Name:    "Siebenmann 2023",
	Author:  "Chris Siebenmann",
	Title:   "Some notes on the cost of Go finalizers (in Go 1.20)",
	Date:    "2023-05-20",
	Machine: "not named; Go 1.20; shares of profiles, no times",
	URL:     "https://utcc.utoronto.ca/~cks/space/blog/programming/GoFinalizerCostsNotes",
}

var sourceAddCleanup = result.Source{
	Name:    "golang/go#75188",
	Author:  "podtserkovskiy",
	Title:   "runtime: improve AddCleanup performance",
	Date:    "2025-08-29",
	Machine: "M1: MacBook Pro 14\", Apple M1 Pro, 8 threads; Linux: amd64 VM, 166 threads; both Go 1.25.0",
	URL:     "https://github.com/golang/go/issues/75188",
}

// The figures of the sources, by rows. Lemire's are for Go 1.20.
var (
	lemire = map[string]float64{"manual": 75, "finalizer": 650}

	lemireGCOff = map[string]float64{"manual": 75, "finalizer": 580}

	addCleanupM1    = map[string]float64{"manual": 73.4, "defer": 75.0, "addcleanup": 359.7, "finalizer": 676.9}
	addCleanupLinux = map[string]float64{"manual": 94.3, "defer": 98.0, "addcleanup": 567, "finalizer": 1058}
)

// released returns the figures of the sources for a row, on any number of processors.
func released(row string, gcOff bool) func(int) []result.Published {
	var all []result.Published
	add := func(of map[string]float64, source string) {
		if of[row] > 0 {
			all = append(all, result.Published{Ns: of[row], Source: source})
		}
	}
	if gcOff {
		add(lemireGCOff, sourceLemire.Name+", collector off")
	} else {
		add(lemire, sourceLemire.Name)
		add(addCleanupM1, sourceAddCleanup.Name+", M1")
		add(addCleanupLinux, sourceAddCleanup.Name+", Linux")
	}
	return func(int) []result.Published { return all }
}

// gcOff ends the names of rows whose collector is off.
const gcOff = "-gc-off"

// Release is the table of the ways to release C memory.
func Release() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "release",
			Title: "What the release of C memory costs",
			About: "A block of 100 bytes is allocated with C's malloc and released, by hand or in the way that the row names. If a row forgets its objects, its time ends when the last block has been released, collections included. A round has ten collections, after a warm-up; the rows that end in -cold have neither. With -run release there are finalizers that do nothing as well, more ways of package own, goroutines on two processors, and a process whose malloc is jemalloc's. With the collector off it ends when the last object is made, and the blocks leak, in a child process. The objects have 16 bytes, as an Owner has; those of the sources had 8.",
			Unit:  "block", Chart: result.Bars,
			Sources: []result.Source{sourceLemire, sourceSiebenmann, sourceAddCleanup},
		},
		Rows: releaseRows(),
	}
}
