package page

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/cmd/cheap/internal/headline"
	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/internal/result/resulttest"
)

// A doubtful time is marked, also in the summary, and a warning says how many there are.
func TestDoubts(t *testing.T) {
	r := resulttest.Report()
	count := func() int { return strings.Count(withoutScripts(write(t, r)), `class="doubt"`) }
	if n := count(); n != 0 || strings.Contains(write(t, r), "was not quiet") {
		t.Errorf("%d marks without a doubt", n)
	}
	for i := range r.Rows {
		if r.Rows[i].Row == "own-forget" {
			r.Rows[i].Doubts = []result.Doubt{result.Unsteady}
		}
	}
	page := withoutScripts(write(t, r))
	if n := count(); n != 2 || !strings.Contains(page, "1 is doubtful") || !strings.Contains(page, `title="The rounds differ by more than a quarter."`) {
		t.Errorf("%d marks, want one in the table and one in the summary", n)
	}
}

// The summary stands before everything else, and each finding leads to its table.
func TestShort(t *testing.T) {
	r := resulttest.Report()
	page := withoutScripts(write(t, r))
	all := headline.Of(r)
	if len(all) < 4 {
		t.Fatalf("the report has %d findings", len(all))
	}
	facts := strings.Index(page, `class="facts"`)
	for _, f := range all {
		at := strings.Index(page, f.Ours+", "+f.Theirs)
		if at < 0 || at > facts || !strings.Contains(page, f.Factor+" "+f.Claim) {
			t.Errorf("%s is at %d, the machine at %d", f.What, at, facts)
		}
		if !strings.Contains(page, `<a href="#`+f.Table+`"`) || !strings.Contains(page, `<section id="`+f.Table+`"`) {
			t.Errorf("%s leads nowhere", f.What)
		}
	}
	r.Rows = r.RowsOf("traces")
	if page := withoutScripts(write(t, r)); strings.Contains(page, `class="short"`) || strings.Contains(page, "faster</b>") {
		t.Error("a report without answers has a summary")
	}
}

// The page says whose it is, of which version, and which command wrote it.
func TestOrigin(t *testing.T) {
	r := resulttest.Report()
	r.Command, r.Version, r.Warnings = "cheap bench -count 3", "v1.2.3", []string{"Most rows are missing."}
	page := write(t, r)
	head, rest, _ := strings.Cut(page, `class="short"`)
	for _, want := range []string{`<h1><a href="` + project + `"`, "Most rows are missing."} {
		if !strings.Contains(head, want) {
			t.Errorf("before the summary there is no %q", want)
		}
	}
	for _, want := range []string{"<code>cheap bench -count 3</code>", "v1.2.3", `<a href="` + project + `/blob/main/docs/figures.md#how-it-is-measured"`} {
		if !strings.Contains(rest, want) {
			t.Errorf("behind the summary there is no %q", want)
		}
	}
	if got := KindOf([]byte(page)[:1024]); got != Whole {
		t.Errorf("the page is of kind %q", got)
	}
	for _, other := range []string{"", "<html>", `<meta name="cheap-bench" content="`} {
		if got := KindOf([]byte(other)); got != "" {
			t.Errorf("%q is a page of kind %q", other, got)
		}
	}
}

// What is promised of rows stands behind their table.
func TestBars(t *testing.T) {
	r := resulttest.Report()
	if strings.Contains(withoutScripts(write(t, r)), "What is promised") {
		t.Error("without a promise there is one")
	}
	r.Rows[0].Bars = []result.Bar{{Figure: "processor time", To: "another", Value: 1.234, Bar: 1.2, Limit: 1.5}}
	page := withoutScripts(write(t, r))
	if want := `<td>processor time</td><td>another</td><td class="n">1.23</td><td class="n">1.2</td><td>missed</td><td class="n">1.5</td>`; !strings.Contains(page, want) {
		t.Errorf("the page has no %s", want)
	}
}
