package present

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/result"
)

// A mark is a letter behind a figure, and what it stands for.
type mark struct{ letter, text string }

// letterOf returns the letter that stands for a text, and adds it to the legend
// if it is new there.
func letterOf(legend *[]mark, text string) string {
	for _, m := range *legend {
		if m.text == text {
			return m.letter
		}
	}
	letter := string(rune('a' + len(*legend)))
	*legend = append(*legend, mark{letter, text})
	return letter
}

// publishedColumns returns a column for each source that the rows have figures
// of. Where a source has several kinds of them ("collector off"), a letter
// behind the figure says which, and the legend what it means; but if a row has
// two figures of a source, each kind has a column.
func publishedColumns(rows []result.Row, legend *[]mark) []column {
	heads := publishedHeads(rows)
	var order []string // heads, as they come
	kinds := make(map[string][]string)
	for _, row := range rows {
		for _, p := range row.Published {
			head := heads(p.Source)
			if !slices.Contains(order, head) {
				order = append(order, head)
			}
			if !slices.Contains(kinds[head], p.Source) {
				kinds[head] = append(kinds[head], p.Source)
			}
		}
	}

	var list []column
	for _, head := range order {
		c := column{group: publishedGroup, head: head}
		if len(kinds[head]) == 1 {
			c.head = kinds[head][0]
		}
		var letters []string
		for _, row := range rows {
			var figures []string
			for _, p := range row.Published {
				if heads(p.Source) != head {
					continue
				}
				text := figure(p.Ns)
				if len(kinds[head]) > 1 && p.Source != head {
					letter := " " + letterOf(legend, p.Source)
					text, letters = text+letter, append(letters, letter)
				}
				figures = append(figures, text)
			}
			c.cells = append(c.cells, cell{strings.Join(figures, " / "), cyan})
		}
		align(c.cells, letters...)
		list = append(list, c)
	}
	return list
}

// publishedHeads returns a function that says which column a figure belongs in:
// that of its source, or, if a row has two figures of that, one of its kind.
func publishedHeads(rows []result.Row) func(source string) string {
	split := make(map[string]bool)
	for _, row := range rows {
		seen := make(map[string]bool)
		for _, p := range row.Published {
			name := sourceName(p.Source)
			split[name] = split[name] || seen[name]
			seen[name] = true
		}
	}
	return func(source string) string {
		if name := sourceName(source); !split[name] {
			return name
		}
		return source
	}
}

// sourceName returns the name of a source without what of it is meant.
func sourceName(source string) string {
	name, _, _ := strings.Cut(source, ", ")
	return name
}

// figure writes a published number in as many digits as its source does.
func figure(ns float64) string { return strconv.FormatFloat(ns, 'f', -1, 64) }

// marks writes what the letters behind figures mean.
func (t *texter) marks(legend []mark) {
	for _, m := range legend {
		t.out.WriteString(hang("  "+m.letter+"  ", "     ", m.text))
	}
}
