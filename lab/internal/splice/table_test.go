package splice

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

// release is a table of releases with rows that are measured here and others.
func release() []measure.Row {
	open := func(int) (measure.Work, error) { return measure.Work{Run: func(int) {}}, nil }
	return []measure.Row{
		{Name: "manual", Open: open},
		{Name: "addcleanup", Group: "release", Versus: "manual", Open: open},
		{Name: "finalizer", Group: "release", Versus: "manual", Open: open},
		{Name: "finalizer-gc-off", NoGC: true, Open: open},
	}
}

// TestTable looks for pairs: each row in the plain runtime, then the same in the
// changed one, to be compared with it in the same rounds.
func TestTable(t *testing.T) {
	table := Table(release(), new(Programs), func(args ...string) []string { return args })
	want := 2 * (2 + len(smallRows()))
	if len(table.Rows) != want {
		t.Fatalf("%d rows, want %d", len(table.Rows), want)
	}
	for i := 0; i < want; i += 2 {
		plain, spliced := table.Rows[i], table.Rows[i+1]
		if spliced.Name != plain.Name+Suffix || spliced.Versus != plain.Name || plain.Versus != "" ||
			plain.Group == "" || plain.Group != spliced.Group || plain.N != spliced.N || plain.N == 0 {
			t.Errorf("no pair: %+v and %+v", plain, spliced)
		}
		if i > 0 && plain.Group == table.Rows[i-1].Group {
			t.Errorf("%s is in a group with others", plain.Name)
		}
	}
}

func TestPublished(t *testing.T) {
	want := map[string]float64{
		"addcleanup": 870, "addcleanup-spliced": 497,
		"addcleanup-8-bytes": 3111, "addcleanup-8-bytes-spliced": 625,
	}
	for _, row := range Table(release(), new(Programs), nil).Rows {
		got := row.Published(1)
		if ns := want[row.Name]; ns == 0 && len(got) != 0 || ns != 0 && (len(got) != 1 || got[0].Ns != ns || got[0].Source != prototype.Name) {
			t.Errorf("%s: %+v is published, want %v", row.Name, got, ns)
		}
		if len(row.Published(2)) != 0 {
			t.Errorf("%s: something is published for 2 processors", row.Name)
		}
	}
}

// TestServe runs in the program of the tests, whose runtime is not changed.
func TestServe(t *testing.T) {
	for _, test := range []struct {
		args string
		want string // in the error; "" for none
	}{
		{"finalizer 1", ""},
		{"finalizer-spliced 1", "runtime of this program"},
		{"manual 1", "no row manual"},
		{"finalizer", "the arguments are a row"},
		{"finalizer 0", "the arguments are a row"},
		{"finalizer x", "the arguments are a row"},
	} {
		var out bytes.Buffer
		err := Serve(context.Background(), release(), strings.Fields(test.args), strings.NewReader("10\n20\n"), &out)
		if test.want == "" && (err != nil || strings.Count(out.String(), "\n") != 2) ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, and the output %q", test.args, err, out.String())
		}
		if errors.Is(err, ErrArgs) != strings.HasPrefix(test.want, "the arguments") {
			t.Errorf("%s: the error %v", test.args, err)
		}
	}
}
