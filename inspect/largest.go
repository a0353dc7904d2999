package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/page/pagejson"
)

// mostLargest is how many suspects the first screen has.
const mostLargest = 3

// A ranked is a LargestSuspect, those with the lowest rank first.
type ranked struct {
	pagejson.LargestSuspect
	rank int
}

// largest returns the suspects for the first screen: stacks of C that keep growing, then stacks of
// which a Close is missing, then those with the most bytes, and at the end what nobody recorded. unrecorded says that
// there are pools that record no lines.
func largest(open []pagejson.Suspect, growing pagejson.GrowthFigures, unrecorded bool) []pagejson.LargestSuspect {
	all := largestGrowth(growing)
	whole := int64(0)
	for _, s := range open {
		whole += s.Bytes
	}
	for _, s := range byStack(open) {
		if s.Live == 0 && !s.MissingClose {
			continue
		}
		pool := "a pool without a name"
		if s.Pool != "" {
			pool = "pool " + s.Pool
		}
		r := ranked{pagejson.LargestSuspect{Line: lineOf(s.Stack), Stack: s.Stack, Text: pool + ": ", Table: "suspects", Bytes: s.Bytes}, 2}
		if s.MissingClose {
			r.rank = 1
			r.Text += fmt.Sprintf("a Close is missing, %s left to the collector, ", digits(s.Collected))
		}
		r.Text += digits(s.Live) + " open"
		if s.Bytes > 0 {
			r.Text += ", " + write(float64(s.Bytes), "bytes")
		}
		if s.Age > 0 {
			r.Text += fmt.Sprintf(", the oldest for %v", s.Age)
		}
		if s.Stack == "" {
			if s.Bytes < whole/100 {
				continue
			}
			r.rank = 3
			r.Line = "a line that was not recorded"
			if unrecorded {
				r.Text += "; inspect.EnableLeaks records lines"
			}
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(y.Bytes, x.Bytes))
	})
	list := []pagejson.LargestSuspect{}
	for _, r := range all[:min(len(all), mostLargest)] {
		list = append(list, r.LargestSuspect)
	}
	return list
}

// largestGrowth returns the lines of what grows in C. Stacks of one line and library are added up: they
// differ in functions of C, which the line does not show.
func largestGrowth(growing pagejson.GrowthFigures) (all []ranked) {
	at := map[[2]string]*pagejson.Growth{}
	var lines [][2]string
	for _, g := range growing.Suspects {
		key := [2]string{lineOf(g.Stack), g.Library}
		if was := at[key]; was != nil {
			was.Live, was.Grown = was.Live+g.Live, was.Grown+g.Grown
			was.Error = int64(math.Hypot(float64(was.Error), float64(g.Error)))
			continue
		}
		at[key] = &g
		lines = append(lines, key)
	}
	for _, key := range lines {
		g := at[key]
		text := fmt.Sprintf("%s ± %s more in %v, %s in use by C (%s)", write(float64(g.Grown), "bytes"), write(float64(g.Error), "bytes"), over(growing), write(float64(g.Live), "bytes"), g.Library)
		all = append(all, ranked{pagejson.LargestSuspect{Line: key[0], Stack: g.Stack, Text: text, Table: "growth", Bytes: g.Grown}, 0})
	}
	return all
}

// noneLargest says why there are no largest suspects.
func noneLargest(growing pagejson.GrowthFigures, advice string) string {
	switch {
	case growing.Note != "" && cmemRuns():
		return "None so far. " + growing.Note
	case advice != "":
		return advice
	}
	return "No line stands out."
}

// byStack adds up suspects of a pool and a stack, whatever their labels are.
func byStack(open []pagejson.Suspect) (list []pagejson.Suspect) {
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
