package main

import (
	"encoding/json"
	"io"

	"github.com/cheapgo/cheap/cmd/cheap/internal/trace"
)

// jsonReport is for programs: one list of objects, written at the end.
type jsonReport struct {
	w    io.Writer
	rows []jsonRow
}

// A jsonRow is one trace on one allocator. Resident memory is null where it was
// not measured.
type jsonRow struct {
	Trace         string  `json:"trace"`
	Allocator     string  `json:"allocator"`
	Ops           int     `json:"ops"`
	NsPerOp       float64 `json:"ns_per_op"`
	NsPerOpMedian float64 `json:"ns_per_op_median"`
	PeakRSSBytes  *int64  `json:"peak_rss_bytes"`
	FinalRSSBytes *int64  `json:"final_rss_bytes"`
}

func (r *jsonReport) begin() error { return nil }

func (r *jsonReport) trace(tr *trace.Trace, _ *settings, results []replayed) error {
	for _, res := range results {
		row := jsonRow{
			Trace:         res.trace,
			Allocator:     res.allocator,
			Ops:           len(tr.Ops),
			NsPerOp:       res.timing.Best(),
			NsPerOpMedian: res.timing.Median(),
		}
		if res.memory != nil {
			row.PeakRSSBytes, row.FinalRSSBytes = &res.memory.Peak, &res.memory.Final
		}
		r.rows = append(r.rows, row)
	}
	return nil
}

func (r *jsonReport) end() error {
	enc := json.NewEncoder(r.w)
	enc.SetIndent("", "  ")
	return enc.Encode(r.rows)
}
