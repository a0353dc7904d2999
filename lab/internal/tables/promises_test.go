package tables

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

// verdict says whether values are within the bar.
func (p *promise) verdict(s ...span) string {
	measured, met, missed := false, true, true
	for _, s := range s {
		if s != (span{}) {
			measured = true
			met = met && s.most <= p.bar
			missed = missed && s.least > p.bar
		}
	}
	switch {
	case !measured:
		return "not measured"
	case met:
		return "met"
	case missed:
		return "missed"
	}
	return "missed in part"
}

// document is the table of the promises in docs/reference/figures.md.
func document() string {
	var b strings.Builder
	b.WriteString("| work | than | row of lab | figure | one P | two Ps | another processor | bar | | limit on one P, on two |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for i := range promises {
		p := &promises[i]
		there := p.there[0].String()
		if p.there[0] != p.there[1] {
			there = strings.Trim(there+"; "+p.there[1].String(), "; ")
		}
		limit := number(p.limit(1))
		if p.limit(1) != p.limit(2) {
			limit += ", " + number(p.limit(2))
		}
		fmt.Fprintf(&b, "| %s | %s | %s/%s | %s | %s | %s | %s | %.4g | %s | %s |\n",
			p.work, p.than, p.table, p.row, p.figure.Name, p.here[0], p.here[1], there, p.bar, p.verdict(p.here[0], p.here[1], p.there[0], p.there[1]), limit)
	}
	return strings.ReplaceAll(b.String(), "|  |", "| |")
}

func (s span) String() string {
	switch {
	case s == span{}:
		return ""
	case number(s.least) == number(s.most):
		return number(s.least)
	}
	return number(s.least) + " to " + number(s.most)
}

// number writes a ratio with two digits behind the point, from 10 on with one.
func number(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// TestPromises looks whether the rows are there that promises are about, and whether they take turns.
func TestPromises(t *testing.T) {
	if !HasC {
		return // most rows need C
	}
	seen := make(map[string]bool)
	for i := range promises {
		p := &promises[i]
		key := fmt.Sprintf("%s of %s/%s, of that of %q", p.figure.Name, p.table, p.row, p.to)
		if seen[key] {
			t.Errorf("two promises about the %s", key)
		}
		seen[key] = true
		if p.bar <= 0 || p.limit(1) < p.bar || p.limit(2) < p.bar {
			t.Errorf("the %s has the bar %v and the limits %v and %v", key, p.bar, p.limit(1), p.limit(2))
		}
	}
	bars := 0
	for _, table := range Promised() {
		for _, row := range table.Rows {
			bars += len(row.Bars)
			for _, b := range row.Bars {
				if b.To != "" && !slices.ContainsFunc(table.Rows, func(r measure.Row) bool { return r.Name == b.To && r.Group == row.Group && r.Name != row.Name }) {
					t.Errorf("%s/%s takes no turns with %s", table.Name, row.Name, b.To)
				}
			}
		}
	}
	if bars != len(promises) {
		t.Errorf("%d promises of %d are about rows that there are", bars, len(promises))
	}
}

func TestLimit(t *testing.T) {
	p := &promise{bar: 0.55, here: [2]span{{0.2, 0.4}, {0.6, 0.8}}, there: [2]span{{0.3, 0.5}, {}}}
	for procs, want := range map[int]float64{1: margin * 0.5, 2: margin * 0.8, 4: margin * 0.8} {
		if got := p.limit(procs); got != want {
			t.Errorf("on %d the limit is %v, want %v", procs, got, want)
		}
	}
	if got := (&promise{bar: 2, here: p.here}).limit(2); got != 2 {
		t.Errorf("with a bar of 2 the limit is %v", got)
	}
	for want, s := range map[string]span{"met": {0.1, 0.55}, "missed in part": {0.55, 0.6}, "missed": {0.56, 0.6}} {
		if got := p.verdict(s, span{}); got != want {
			t.Errorf("%v is %q, want %q", s, got, want)
		}
	}
	if got := p.verdict(span{}); got != "not measured" {
		t.Errorf("nothing is %q", got)
	}
}
