package inspect

import (
	"slices"
	"testing"
	"time"
)

func TestLargest(t *testing.T) {
	const find = "example.com/shop.find\n\t/src/shop/find.go:30\nmain.main\n\t/src/main.go:9\n"
	open := []Suspect{
		{Pool: "images", Stack: find, Live: 1000, Bytes: 3 << 20, Age: 3 * time.Minute},
		{Pool: "images", Label: "a", Stack: find, Live: 24, Bytes: 1 << 20},
		{Pool: "images", Live: 7, Bytes: 9 << 20},
		{Pool: "files", Stack: "main.open\n\t/src/open.go:3\n", Collected: 1234, MissingClose: true},
		{Pool: "files", Stack: "main.closed\n\t/src/open.go:8\n"},
	}
	grown := GrowthFigures{Seconds: 60, Suspects: []Growth{{
		Library: "libmany.so", Live: 7 << 20, Grown: 6 << 20,
		Stack: "many_open\n\t/lib/libmany.so\nmain._Cfunc_many_open\n\t_cgo_gotypes.go:1\nmain.leak\n\t/src/main.go:7\n",
	}}}
	find4 := LargestSuspect{"shop.find find.go:30", "1,024 open of images, 4.00 MiB, the oldest for 3m0s", "suspects", 4 << 20}
	missing := LargestSuspect{"main.open open.go:3", "0 open of files, 0, 1,234 left to the collector: a Close is missing", "suspects", 0}
	growing := LargestSuspect{"main.leak main.go:7", "7.00 MiB of libmany.so, 6.00 MiB more in 1m0s", "growth", 6 << 20}
	unknown := LargestSuspect{"who made them was not recorded", "7 open of images, 9.00 MiB", "suspects", 9 << 20}
	for _, row := range []struct {
		name  string
		open  []Suspect
		grown GrowthFigures
		want  []LargestSuspect
	}{
		{"nothing", nil, GrowthFigures{}, []LargestSuspect{}},
		{"all", open, grown, []LargestSuspect{growing, missing, find4}},
		{"owners", open, GrowthFigures{}, []LargestSuspect{missing, find4, unknown}},
	} {
		if got := largest(row.open, row.grown); !slices.Equal(got, row.want) {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
	for stack, want := range map[string]string{
		"": "", "\n": "", "f": "f", "f\n": "f", "lib_f\n\t/lib/a.so\n": "lib_f", "\t/a.go:1\n\t/b.go:2\n": "\t/a.go:1",
	} {
		if got := lineOf(stack); got != want {
			t.Errorf("%q: %q, want %q", stack, got, want)
		}
	}
}
