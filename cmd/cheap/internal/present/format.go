package present

import (
	"math"
	"strconv"
	"strings"
)

// columns is the width that text is made for.
const columns = 100

// missing stands where there is no figure.
const missing = "–"

// duration writes a time in three significant digits, or in all digits before
// the point. Up to 10 µs it is in nanoseconds, the unit of all sources.
func duration(ns float64) string {
	switch {
	case math.IsNaN(ns) || math.IsInf(ns, 0):
		return missing
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

// significant writes a number in three significant digits, without an exponent,
// and keeps all digits before the point.
func significant(x float64) string {
	if x == 0 || math.Abs(x) >= 999.5 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	// Rounded first: 9.996 is 10.0 and not 10.00.
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 2, 64), 64)
	if err != nil {
		rounded = x
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(rounded))))
	return strconv.FormatFloat(rounded, 'f', max(digits, 0), 64)
}

// count writes a number of allocations or bytes per operation: whole numbers
// without a point, others with two digits behind it.
func count(x float64) string {
	if whole := math.Round(x); math.Abs(x-whole) < 0.005 {
		return strconv.FormatFloat(whole, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// times writes a ratio.
func times(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return missing
	case x < 0.0995:
		return strconv.FormatFloat(x, 'f', 3, 64) + "×"
	case x < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64) + "×"
	}
	return significant(x) + "×"
}

// percent writes a part of 1, with a digit behind the point where it is small.
func percent(x float64) string {
	switch {
	case x >= 9.995:
		return ">999%"
	case x >= 0.0995:
		return strconv.FormatFloat(100*x, 'f', 0, 64) + "%"
	}
	return strconv.FormatFloat(100*x, 'f', 1, 64) + "%"
}

// thousands writes a number that is not negative in groups of three digits.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// plural writes a number and what it counts.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

// wrap breaks a text into lines of at most width columns, between words. A word
// that is longer has a line of its own.
func wrap(words []string, width int) []string {
	var lines []string
	line := ""
	for _, word := range words {
		switch {
		case line == "":
			line = word
		case length(line)+1+length(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// hang writes text in lines that begin with indent, but for the first, which
// begins with lead.
func hang(lead, indent, text string) string {
	return hangWords(lead, indent, strings.Fields(text))
}

func hangWords(lead, indent string, words []string) string {
	width := columns - max(length(lead), length(indent))
	return lead + strings.Join(wrap(words, width), "\n"+indent) + "\n"
}
