//go:build cgo

package bench

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

var limits = flag.Bool("limits", false, "fail a benchmark that has measured more than its regression limit")

// A promise is a figure of a benchmark that is to be at most the bar. What was measured decides
// whether the bar is met: a bar that is missed stays, and is shown as missed.
//
// Beside it there is a regression limit, above which something has become worse: margin times the
// most that was measured, with as many Ps, on this processor or on the other one, but not less than
// the bar.
type promise struct {
	work, than string // as docs/architecture.md says it
	figure     string
	bench      string // without "Benchmark"
	unit       string
	bar        float64

	here  [2]span // on one P and on two
	there [2]span // the same on another processor
}

// A span is the least and the most of what several runs have measured; 0 and 0 if none did.
type span struct{ least, most float64 }

// margin is how much more than ever before is a regression. Ratios of rounds that take turns vary
// by less than that on a machine with other work, as the spans show.
const margin = 1.25

// limit returns the regression limit on so many Ps. Where only the other number of Ps was measured,
// that counts.
func (p *promise) limit(procs int) float64 {
	i := min(procs, 2) - 1
	most := max(p.here[i].most, p.there[i].most)
	if most == 0 {
		most = max(p.here[1-i].most, p.there[1-i].most)
	}
	return max(p.bar, margin*most)
}

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

// An outcome is what a benchmark has measured for a promise.
type outcome struct {
	*promise
	procs int
	value float64
}

// preloadedEnv names the preloaded library in a child process.
const preloadedEnv = "CHEAP_BENCH_PRELOADED"

var (
	outcomesLock sync.Mutex
	outcomes     []outcome
)

// report reports a figure of a benchmark for which there is a promise, and keeps it for the table
// that is printed at the end.
func report(b *testing.B, unit string, value float64) {
	b.Helper()
	if cpu := flag.Lookup("test.cpu").Value.String(); strings.Contains(cpu, ",") {
		b.Fatalf("-cpu=%s: measure each number of Ps in a run of its own; with -benchtime=1x go test runs the first one on the Ps of the last", cpu)
	}
	b.ReportMetric(value, unit)
	p := promised(strings.TrimPrefix(b.Name(), "Benchmark"), unit)
	if p == nil {
		b.Fatalf("there is no promise about %s of %s", unit, b.Name())
	}
	o := outcome{p, runtime.GOMAXPROCS(0), value}
	outcomesLock.Lock()
	outcomes = append(outcomes, o)
	outcomesLock.Unlock()
	if *limits && o.regression() {
		b.Errorf("%s is %.3g; the regression limit is %.3g", unit, value, p.limit(o.procs))
	}
}

func (o outcome) regression() bool { return o.value > o.limit(o.procs) }

func promised(bench, unit string) *promise {
	for i := range promises {
		if p := &promises[i]; p.bench == bench && p.unit == unit {
			return p
		}
	}
	return nil
}

// TestMain prints the promises that were measured behind the benchmarks.
func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv(preloadedEnv) == "" {
		printOutcomes(os.Stdout, outcomes)
	}
	os.Exit(code)
}

func printOutcomes(w io.Writer, list []outcome) {
	if len(list) == 0 {
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "promise\tPs\tfigure\tmeasured\tbar\t\tregression limit\t")
	for _, o := range list {
		fmt.Fprintf(tw, "%s\t%d\t%s\t%.3g\t%.3g\t%s\t%.3g\t", o.bench, o.procs, o.unit, o.value, o.bar, o.verdict(span{o.value, o.value}), o.limit(o.procs))
		if o.regression() {
			fmt.Fprint(tw, "ABOVE THE LIMIT")
		}
		fmt.Fprintln(tw)
	}
	tw.Flush()
}

// document is what docs/architecture.md has of the promises.
func document() string {
	var b strings.Builder
	b.WriteString("| work | than | figure | one P | two Ps | another processor | bar | | limit on one P, on two |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
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
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %.4g | %s | %s |\n",
			p.work, p.than, p.figure, p.here[0], p.here[1], there, p.bar, p.verdict(p.here[0], p.here[1], p.there[0], p.there[1]), limit)
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

// TestDocumentShowsPromises compares the table with that of docs/architecture.md.
func TestDocumentShowsPromises(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := document(); !strings.Contains(string(text), want) {
		t.Errorf("docs/architecture.md does not have this table:\n%s", want)
	}
}

func TestLimit(t *testing.T) {
	p := &promise{bar: 0.55, here: [2]span{{0.2, 0.4}, {0.6, 0.8}}, there: [2]span{{0.3, 0.5}, {}}}
	if got := p.limit(1); got != margin*0.5 {
		t.Errorf("on one P the limit is %v", got)
	}
	if got := p.limit(2); got != margin*0.8 {
		t.Errorf("on two Ps the limit is %v", got)
	}
	if got := p.limit(4); got != margin*0.8 {
		t.Errorf("on four Ps the limit is %v", got)
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
	if o := (outcome{p, 2, 1.01}); !o.regression() {
		t.Error("1.01 is no regression")
	}
	if o := (outcome{p, 2, 0.99}); o.regression() {
		t.Error("0.99 is a regression")
	}
	var b strings.Builder
	printOutcomes(&b, []outcome{{p, 2, 1.01}})
	if !strings.Contains(b.String(), "missed") || !strings.Contains(b.String(), "ABOVE") {
		t.Errorf("it prints\n%s", &b)
	}
}
