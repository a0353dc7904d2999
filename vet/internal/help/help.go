// Package help has what the texts of the analyzers have in common.
package help

import "strings"

// URL is the page that describes the analyzers.
const URL = "https://github.com/cheapgo/cheap/blob/main/docs/vet.md"

// Doc returns what the comment of a package says below "# Analyzer name" and the line
// "name: summary", as the documentation of an analyzer: the summary first.
func Doc(file, name string) string {
	_, text, ok := strings.Cut(file, "// # Analyzer "+name+"\n")
	if !ok {
		panic("no documentation of analyzer " + name)
	}
	text, _, _ = strings.Cut(text, "\npackage ")
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "//"), " "))
	}
	return strings.TrimPrefix(strings.TrimSpace(strings.Join(lines, "\n")), name+": ")
}
