package page

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// Measured times have three significant digits, which is more than they are
// worth on most machines, zeros included, so that columns line up. Published ones
// are as their source writes them, up to four digits.
func measured(ns float64) string  { return duration(ns, 3, fixed) }
func published(ns float64) string { return duration(ns, 4, shortest) }

// duration writes nanoseconds in the largest unit of which there is at least
// one, with so many significant digits.
func duration(ns float64, digits int, write func(f float64, digits int) string) string {
	ns = round(ns, digits) // what rounds up to 1000 of a unit is 1 of the next
	unit, size := "ns", 1.0
	switch abs := math.Abs(ns); {
	case abs >= 1e9:
		unit, size = "s", 1e9
	case abs >= 1e6:
		unit, size = "ms", 1e6
	case abs >= 1e3:
		unit, size = "µs", 1e3
	}
	return write(ns/size, digits) + "\u00a0" + unit
}

// round rounds f to so many significant digits.
func round(f float64, digits int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'e', digits-1, 64), 64)
	if err != nil {
		return f // out of range
	}
	return rounded
}

// fixed writes f with so many significant digits, or all of those before the
// point if they are more.
func fixed(f float64, digits int) string {
	if f == 0 {
		return "0"
	}
	f = round(f, digits)
	before := int(math.Floor(math.Log10(math.Abs(f)))) + 1
	return strconv.FormatFloat(f, 'f', max(digits-before, 0), 64)
}

// shortest is fixed without zeros that say nothing.
func shortest(f float64, digits int) string {
	return strconv.FormatFloat(round(f, digits), 'f', -1, 64)
}

// interval writes the bounds of a confidence interval, "" where there is none.
func interval(low, high float64) string {
	if low == 0 && high == 0 {
		return ""
	}
	from, unit, _ := strings.Cut(measured(low), "\u00a0")
	to, last, _ := strings.Cut(measured(high), "\u00a0")
	if unit != last {
		from += "\u00a0" + unit
	}
	return from + "\u00a0–\u00a0" + to + "\u00a0" + last
}

// times writes a ratio.
func times(ratio float64) string { return fixed(ratio, 3) + "×" }

func percent(share float64) string { return shortest(share*100, 2) + "\u00a0%" }

// count writes an average number of things or of bytes, whole where it is large.
func count(f float64) string {
	switch {
	case f < 0.005:
		return "0"
	case f < 100:
		return shortest(f, 3)
	}
	return strconv.FormatFloat(f, 'f', 0, 64)
}

// summary is the machine in one line.
func summary(m result.Machine) string {
	s := m.CPU
	if m.Cores > 0 {
		s += ", " + cores(m.Cores)
	}
	if m.Go != "" {
		s += ", " + m.Go
	}
	return s
}

func cores(n int) string {
	if n == 1 {
		return "1 core"
	}
	return strconv.Itoa(n) + " cores"
}

// date writes a time of RFC 3339 to the minute, and leaves others as they are.
func date(s string) string {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return s
	}
	return t.Format("2006-01-02 15:04 -07:00")
}

// facts are what is known of the machine.
func facts(m result.Machine) []fact {
	system := m.OS
	if m.Arch != "" {
		system += "/" + m.Arch
	}
	n := ""
	if m.Cores > 0 {
		n = strconv.Itoa(m.Cores)
	}
	all := []fact{
		{"CPU", m.CPU}, {"Cores", n}, {"Go", m.Go}, {"System", system},
		{"GOGC", m.GOGC}, {"malloc", m.Malloc}, {"Date", date(m.Date)},
	}
	var known []fact
	for _, f := range all {
		if f.Value != "" {
			known = append(known, f)
		}
	}
	return known
}
