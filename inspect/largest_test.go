package inspect

import (
	"slices"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/page/pagejson"
)

func TestLargest(t *testing.T) {
	const find = "example.com/shop.find\n\t/src/shop/find.go:30\nmain.main\n\t/src/main.go:9\n"
	open := []pagejson.Suspect{
		{Pool: "images", Stack: find, Live: 1000, Bytes: 3 << 20, Age: 3 * time.Minute},
		{Pool: "images", Label: "a", Stack: find, Live: 24, Bytes: 1 << 20},
		{Pool: "images", Live: 7, Bytes: 9 << 20},
		{Pool: "files", Stack: "main.open\n\t/src/open.go:3\n", Collected: 1234, MissingClose: true},
		{Pool: "files", Stack: "main.closed\n\t/src/open.go:8\n"},
	}
	grown := pagejson.GrowthFigures{Seconds: 60, Suspects: []pagejson.Growth{{
		Library: "libmany.so", Live: 7 << 20, Grown: 6 << 20, Error: 1 << 20,
		Stack: "many_open\n\t/lib/libmany.so\nmain._Cfunc_many_open\n\t_cgo_gotypes.go:1\nmain.leak\n\t/src/main.go:7\n",
	}}}
	find4 := pagejson.LargestSuspect{Line: "shop.find find.go:30", Stack: find, Text: "pool images: 1,024 open, 4.00 MiB, the oldest for 3m0s", Table: "suspects", Bytes: 4 << 20}
	missing := pagejson.LargestSuspect{Line: "main.open open.go:3", Stack: open[3].Stack, Text: "pool files: a Close is missing, 1,234 left to the collector, 0 open", Table: "suspects", Bytes: 0}
	growing := pagejson.LargestSuspect{Line: "main.leak main.go:7", Stack: grown.Suspects[0].Stack, Text: "6.00 MiB ± 1.00 MiB more in 1m0s, 7.00 MiB in use by C (libmany.so)", Table: "growth", Bytes: 6 << 20}
	unknown := pagejson.LargestSuspect{Line: "a line that was not recorded", Text: "pool images: 7 open, 9.00 MiB; inspect.EnableLeaks records lines", Table: "suspects", Bytes: 9 << 20}
	// Two stacks of C that the same line has called.
	two := pagejson.GrowthFigures{Seconds: 20.001, Suspects: []pagejson.Growth{
		{Library: "libmany.so", Live: 7 << 20, Grown: 3 << 20, Error: 3 << 19, Stack: grown.Suspects[0].Stack},
		{Library: "libmany.so", Live: 2 << 20, Grown: 1 << 20, Error: 2 << 20, Stack: "other_" + grown.Suspects[0].Stack},
	}}
	both := pagejson.LargestSuspect{Line: "main.leak main.go:7", Stack: grown.Suspects[0].Stack, Text: "4.00 MiB ± 2.50 MiB more in 20s, 9.00 MiB in use by C (libmany.so)", Table: "growth", Bytes: 4 << 20}
	for _, row := range []struct {
		name  string
		open  []pagejson.Suspect
		grown pagejson.GrowthFigures
		want  []pagejson.LargestSuspect
	}{
		{"nothing", nil, pagejson.GrowthFigures{}, []pagejson.LargestSuspect{}},
		{"all", open, grown, []pagejson.LargestSuspect{growing, missing, find4}},
		{"owners", open, pagejson.GrowthFigures{}, []pagejson.LargestSuspect{missing, find4, unknown}},
		{"two stacks of a line", nil, two, []pagejson.LargestSuspect{both}},
		{"few were not recorded", append(open[:2:2], pagejson.Suspect{Pool: "images", Live: 1, Bytes: 100}), pagejson.GrowthFigures{}, []pagejson.LargestSuspect{find4}},
	} {
		if got := largest(row.open, row.grown, true); !slices.Equal(got, row.want) {
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
