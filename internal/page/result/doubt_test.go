package result

import (
	"slices"
	"testing"
)

func TestDoubts(t *testing.T) {
	even := []float64{100, 101, 99, 100, 102, 98}
	for _, tt := range []struct {
		name  string
		row   Row
		cores int
		want  []Doubt
	}{
		{"quiet", Row{Procs: 1, NsPerOp: 100, CPUNsPerOp: 100, Samples: even}, 2, nil},
		{"no processor time", Row{Procs: 1, NsPerOp: 100, Samples: even}, 2, nil},
		{"more in other threads", Row{Procs: 1, NsPerOp: 100, CPUNsPerOp: 180, Samples: even}, 2, nil},
		{"1.80 µs and 0.5 µs", Row{Procs: 1, NsPerOp: 1800, CPUNsPerOp: 500, Samples: []float64{1800, 1810, 1790}}, 2, []Doubt{Waited}},
		{"two processors, one used", Row{Procs: 2, NsPerOp: 100, CPUNsPerOp: 100, Samples: even}, 2, []Doubt{Waited}},
		{"two processors, both used", Row{Procs: 2, NsPerOp: 100, CPUNsPerOp: 195, Samples: even}, 2, nil},
		{"more than there are", Row{Procs: 4, NsPerOp: 100, CPUNsPerOp: 195, Samples: even}, 2, nil},
		{"a slow half", Row{Procs: 1, NsPerOp: 115, CPUNsPerOp: 115, Samples: []float64{100, 130, 100, 131, 99, 132}}, 2, []Doubt{Unsteady}},
		{"one slow round", Row{Procs: 1, NsPerOp: 100, CPUNsPerOp: 100, Samples: []float64{100, 100, 101, 99, 100, 900}}, 2, nil},
		{"three rounds", Row{Procs: 1, NsPerOp: 100, CPUNsPerOp: 100, Samples: []float64{100, 99, 140}}, 2, []Doubt{Unsteady}},
		{"two rounds", Row{Procs: 1, NsPerOp: 100, CPUNsPerOp: 100, Samples: []float64{10, 190}}, 2, nil},
		{"both", Row{Procs: 1, NsPerOp: 100, CPUNsPerOp: 50, Samples: []float64{100, 50, 140}}, 2, []Doubt{Waited, Unsteady}},
	} {
		if got := Doubts(&tt.row, tt.cores); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	r := Row{Samples: []float64{3, 1, 2}}
	if Doubts(&r, 1); !slices.Equal(r.Samples, []float64{3, 1, 2}) {
		t.Error("the rounds were sorted in place")
	}
}

func TestDoubtful(t *testing.T) {
	r := &Report{Rows: []Row{{}, {Doubts: []Doubt{Waited}}, {Doubts: []Doubt{Waited, Unsteady}}}}
	got := r.Doubtful()
	if want := "2 of 3 times are doubtful (!): other programs had the processor in 2, the rounds differ by more than a quarter in 1."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (&Report{Rows: []Row{{}}}).Doubtful(); got != "" {
		t.Errorf("without a doubt: %q", got)
	}
}
