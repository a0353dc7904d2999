// Package figure is how reports show figures, the same way in text and on pages: it writes times,
// ratios, parts and counts, and has the style of the pages.
package figure

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Missing stands where there is no figure.
const Missing = "–"

// Duration writes a time in three significant digits, or in all digits before
// the point. Up to 10 µs it is in nanoseconds, the unit of all sources.
func Duration(ns float64) string {
	switch {
	case !isFinite(ns):
		return Missing
	case ns < 9999.5:
		return significant(ns) + " ns"
	}
	units := []string{"µs", "ms", "s"}
	ns /= 1000
	for len(units) > 1 && ns >= 999.5 {
		ns /= 1000
		units = units[1:]
	}
	return significant(ns) + " " + units[0]
}

// Exact writes a number in as many digits as it was given in.
func Exact(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// Times writes a ratio.
func Times(x float64) string {
	switch {
	case !isFinite(x):
		return Missing
	case x < 0.0995:
		return strconv.FormatFloat(x, 'f', 3, 64) + "×"
	case x < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64) + "×"
	}
	return significant(x) + "×"
}

// Percent writes a part of 1, with a digit behind the point where it is small.
func Percent(x float64) string {
	switch {
	case x >= 9.995:
		return ">999%"
	case x >= 0.0995:
		return strconv.FormatFloat(100*x, 'f', 0, 64) + "%"
	}
	return strconv.FormatFloat(100*x, 'f', 1, 64) + "%"
}

// Count writes an average number of allocations or bytes: whole numbers and
// those above 100 without a point, others with two digits behind it.
func Count(x float64) string {
	if math.Abs(x) >= 100 || math.Abs(x-math.Round(x)) < 0.005 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// Thousands writes a number that is not negative in groups of three digits.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Bytes writes a number of bytes in three significant digits, in KiB or a larger unit.
func Bytes(n float64) string {
	units := []string{"KiB", "MiB", "GiB"}
	n /= 1024
	for len(units) > 1 && math.Abs(n) >= 999.5 {
		n /= 1024
		units = units[1:]
	}
	return significant(n) + " " + units[0]
}

// Plural writes a number and what it counts.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Thousands(n) + " " + what + "s"
}

// significant writes a number in three significant digits, without an exponent,
// and keeps all digits before the point.
func significant(x float64) string {
	if x == 0 || math.Abs(x) >= 999.5 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	// Rounded first: 9.996 is 10.0 and not 10.00.
	x = Round(x, 3)
	digits := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	return strconv.FormatFloat(x, 'f', max(digits, 0), 64)
}

// Round rounds a number to so many significant digits.
func Round(x float64, digits int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64)
	if err != nil {
		return x // rounding up left the range of float64
	}
	return rounded
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Printable is a name without what a terminal takes for a command: a question mark stands in
// its place.
func Printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, name)
}
