package main

import (
	"regexp"
	"strings"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

// A pattern selects rows as go test's -run selects tests: regular expressions
// between slashes, the first for the table and the second for the row, and
// alternatives of these between bars.
type pattern []alternative

type alternative struct {
	text       string
	table, row *regexp.Regexp
}

// parsePattern reads a pattern. An error names the part that is not a regular
// expression.
func parsePattern(text string) (pattern, error) {
	var p pattern
	for _, alt := range splitOutside(text, '|') {
		parts := splitOutside(alt, '/')
		if len(parts) > 2 {
			return nil, usagef("-run: %q has %d slashes; use at most one, between the patterns of the table and of the row", alt, len(parts)-1)
		}
		var exprs [2]*regexp.Regexp
		for i := range exprs {
			expr := ""
			if i < len(parts) {
				expr = parts[i]
			}
			var err error
			if exprs[i], err = regexp.Compile(expr); err != nil {
				return nil, usagef("-run: %v; use regular expressions, as in go test -run", err)
			}
		}
		p = append(p, alternative{alt, exprs[0], exprs[1]})
	}
	return p, nil
}

// splitOutside splits a regular expression at a character, except where that is
// escaped or within brackets.
func splitOutside(s string, at byte) []string {
	var out []string
	start, class, paren := 0, false, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			paren++
		case c == ')':
			paren--
		case c == at && paren == 0:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	return append(out, s[start:])
}

func (a alternative) keeps(table, row string) bool {
	return a.table.MatchString(table) && a.row.MatchString(row)
}

func (p pattern) keeps(table, row string) bool {
	for _, a := range p {
		if a.keeps(table, row) {
			return true
		}
	}
	return false
}

// names reports whether the pattern has a part for the table, which is not empty.
func (p pattern) names(table string) bool {
	for _, a := range p {
		if a.table.String() != "" && a.table.MatchString(table) {
			return true
		}
	}
	return false
}

// check returns an error if an alternative selects nothing. The error lists the
// rows of the tables that the alternative selects, or else the tables.
func (p pattern) check(tables []measure.Table) error {
	for _, a := range p {
		if err := a.check(tables); err != nil {
			return err
		}
	}
	return nil
}

func (a alternative) check(tables []measure.Table) error {
	var names, rows []string
	empty := ""
	for _, t := range tables {
		selected := a.table.MatchString(t.Name)
		if t.Named && a.table.String() == "" {
			names = append(names, t.Name)
			continue
		}
		if len(t.Rows) > 0 {
			names = append(names, t.Name)
		} else if selected {
			empty = t.Name
		}
		for _, r := range t.Rows {
			if r.Named && a.table.String() == "" {
				continue
			}
			if a.keeps(t.Name, r.Name) {
				return nil
			}
			if selected {
				rows = append(rows, t.Name+"/"+r.Name)
			}
		}
	}
	switch {
	case len(rows) > 0:
		return usagef("-run: no row matches %q; the rows are %s", a.text, strings.Join(rows, ", "))
	case empty != "":
		return usagef("-run: the table %s needs cgo, which this build does not have; the tables are %s", empty, strings.Join(names, ", "))
	}
	return usagef("-run: no table matches %q; the tables are %s", a.text, strings.Join(names, ", "))
}
