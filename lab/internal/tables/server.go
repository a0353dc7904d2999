package tables

import (
	"fmt"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
)

// A request of the table server.
const (
	serverRequests = 300
	leastImage     = 64 << 10
	mostImage      = 1 << 20
	atOnce         = 4 // requests for each processor
)

// Server is the table of a server that forgets large C objects.
func Server() measure.Table {
	return measure.Table{
		Table: result.Table{
			Name:  "server",
			Title: "A server that forgets C objects",
			About: fmt.Sprintf("%d requests, %d at once for each processor. Each makes an image in C of %d KiB to %d MiB, writes all of it, allocates 4 KiB in Go, waits for 1 to 4 ms, and ends: ", serverRequests, atOnce, leastImage>>10, mostImage>>20) +
				"the image is closed, or forgotten, with a cleanup, with an own.Pool, and with an own.Pool and package pace. " +
				"The time is that of all requests divided by their number, p99 that of single ones. " +
				"Resident is the most memory of the process during that, less what it had before. No source has figures.",
			Unit:  "request",
			Chart: result.Bytes,
		},
		Rows:   serverRows(),
		Weight: 4, // a round is a tenth of a second or two
	}
}
