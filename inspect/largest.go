package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A LargestSuspect is a line of which the first screen of the page says that it holds memory: a Suspect, or a
// Growth.
type LargestSuspect struct {
	Line  string `json:"line"`  // the innermost function of Go of the stack, with its file and line
	Text  string `json:"text"`  // what there is of it
	Table string `json:"table"` // where more is said: "suspects", or "growth"
	Bytes int64  `json:"bytes"` // that are open, or by which it has grown
}

// mostLargest is how many suspects the first screen has.
const mostLargest = 3

// largest returns the suspects for the first screen: stacks of C that keep growing, then stacks of
// which a Close is missing, then those with the most bytes, and at the end what nobody recorded.
func largest(open []Suspect, growing GrowthFigures) []LargestSuspect {
	type ranked struct {
		LargestSuspect
		rank int
	}
	var all []ranked
	text := func(n int64) string { return write(float64(n), "bytes") }
	for _, g := range growing.Suspects {
		s := fmt.Sprintf("%s of %s, %s more in %v", text(g.Live), g.Library, text(g.Grown), time.Duration(growing.Seconds*1e9))
		all = append(all, ranked{LargestSuspect{lineOf(g.Stack), s, "growth", g.Grown}, 0})
	}
	for _, s := range byStack(open) {
		if s.Live == 0 && !s.MissingClose {
			continue
		}
		r := ranked{LargestSuspect{lineOf(s.Stack), fmt.Sprintf("%s open of %s, %s", digits(s.Live), cmp.Or(s.Pool, "a pool without a name"), text(s.Bytes)), "suspects", s.Bytes}, 2}
		if s.Age > 0 {
			r.Text += fmt.Sprintf(", the oldest for %v", s.Age)
		}
		switch {
		case s.MissingClose:
			r.rank = 1
			r.Text += fmt.Sprintf(", %s left to the collector: a Close is missing", digits(s.Collected))
		case s.Stack == "":
			r.rank = 3
			r.Line = "who made them was not recorded"
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(y.Bytes, x.Bytes))
	})
	list := []LargestSuspect{}
	for _, r := range all[:min(len(all), mostLargest)] {
		list = append(list, r.LargestSuspect)
	}
	return list
}

// byStack adds up suspects of a pool and a stack, whatever their labels are.
func byStack(open []Suspect) (list []Suspect) {
	at := map[[2]string]int{}
	for _, s := range open {
		key := [2]string{s.Pool, s.Stack}
		i, ok := at[key]
		if !ok {
			at[key] = len(list)
			list = append(list, s)
			continue
		}
		was := &list[i]
		was.Live, was.Bytes, was.Age = was.Live+s.Live, was.Bytes+s.Bytes, max(was.Age, s.Age)
	}
	return list
}

// lineOf returns the innermost function of Go of a stack and its line, without folders. Functions that
// cgo has made are left out. If there is none, it is the first line of the stack.
func lineOf(stack string) string {
	lines := strings.Split(stack, "\n")
	short := func(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }
	for i, name := range lines[:len(lines)-1] {
		file, isFile := strings.CutPrefix(lines[i+1], "\t")
		if isFile && strings.Contains(file, ".go:") && !strings.Contains(name, "._Cfunc_") && !strings.HasPrefix(name, "\t") {
			return short(name) + " " + short(file)
		}
	}
	return lines[0]
}
