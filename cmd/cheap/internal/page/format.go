package page

import (
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// Numbers are written as in the text, and on one line with their unit.
func measured(ns float64) string  { return together(figure.Duration(ns)) }
func published(ns float64) string { return together(figure.Exact(ns) + " ns") }

// together replaces the spaces of a text by spaces at which no line is broken.
func together(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") }

// interval writes the bounds of a confidence interval, "" where there is none.
func interval(low, high float64) string {
	if low == 0 && high == 0 {
		return ""
	}
	from, unit, _ := strings.Cut(figure.Duration(low), " ")
	to, last, _ := strings.Cut(figure.Duration(high), " ")
	if unit != last {
		from += " " + unit
	}
	return together(from + " – " + to + " " + last)
}

// summary is the machine in one line.
func summary(m result.Machine) string {
	s := m.CPU
	if m.Cores > 0 {
		s += ", " + figure.Plural(m.Cores, "core")
	}
	if m.Go != "" {
		s += ", " + m.Go
	}
	return s
}

// date writes a time of RFC 3339 to the minute. Another text stays as it is.
func date(s string) string {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return s
	}
	return t.Format("2006-01-02 15:04 -07:00")
}

// facts are the known properties of the machine.
func facts(m result.Machine) []fact {
	system := m.OS
	if m.Arch != "" {
		system += "/" + m.Arch
	}
	cores := ""
	if m.Cores > 0 {
		cores = figure.Thousands(m.Cores)
	}
	all := []fact{
		{"CPU", m.CPU}, {"Cores", cores}, {"Go", m.Go}, {"System", system},
		{"GOGC", m.GOGC}, {"malloc", m.Malloc}, {"Huge pages", m.HugePages}, {"Date", date(m.Date)},
	}
	var known []fact
	for _, f := range all {
		if f.Value != "" {
			known = append(known, f)
		}
	}
	return known
}
