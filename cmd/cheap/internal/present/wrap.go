package present

import "strings"

// columns is the width that text is made for.
const columns = 100

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
