package present

import "strings"

// A Terminal says what a text is written for.
type Terminal struct {
	Color   bool // with ANSI escape sequences, for a terminal
	Columns int  // the width of lines; 0 is 100
}

// The widths that text is made for.
const (
	usualColumns = 100
	leastColumns = 80 // a text for less is as wide as this
)

func (t Terminal) columns() int {
	if t.Columns == 0 {
		return usualColumns
	}
	return max(t.Columns, leastColumns)
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
func (t *texter) hang(lead, indent, text string) string {
	width := t.columns - max(length(lead), length(indent))
	return lead + strings.Join(wrap(strings.Fields(text), width), "\n"+indent) + "\n"
}
