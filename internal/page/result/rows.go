package result

import (
	"slices"
	"strconv"
	"strings"
)

// RowsOf returns the rows of a table.
func (r *Report) RowsOf(table string) []Row {
	var rows []Row
	for _, row := range r.Rows {
		if row.Table == table {
			rows = append(rows, row)
		}
	}
	return rows
}

// A Section is a part of a table that stands apart.
type Section struct {
	Title string // "" of the first part
	Rows  []Row
}

// Sections divides the rows of a table into its parts, in the order in which they come.
func Sections(rows []Row) []Section {
	var all []Section
	for _, row := range rows {
		i := slices.IndexFunc(all, func(s Section) bool { return s.Title == row.Section })
		if i < 0 {
			i = len(all)
			all = append(all, Section{Title: row.Section})
		}
		all[i].Rows = append(all[i].Rows, row)
	}
	return all
}

// SplitNumber splits the number off the end of a row's name. The number is the
// place of the row in a table of [Sizes].
func SplitNumber(name string) (series string, number int, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name, 0, false
	}
	n, err := strconv.Atoi(name[i+1:])
	if err != nil {
		return name, 0, false
	}
	return name[:i], n, true
}

// MixesProcs reports whether rows differ in their number of processors.
func MixesProcs(rows []Row) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.Procs != rows[0].Procs })
}

// A Note is a note and the names of its rows, with commas between them.
type Note struct{ Rows, Text string }

// Notes returns the notes of rows. Rows with the same note share it.
func Notes(rows []Row) []Note {
	var texts []string
	names := make(map[string][]string)
	for _, row := range rows {
		if row.Note == "" {
			continue
		}
		if names[row.Note] == nil {
			texts = append(texts, row.Note)
		}
		if !slices.Contains(names[row.Note], row.Row) {
			names[row.Note] = append(names[row.Note], row.Row)
		}
	}
	var notes []Note
	for _, text := range texts {
		notes = append(notes, Note{strings.Join(names[text], ", "), text})
	}
	return notes
}
