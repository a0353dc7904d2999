package present

import (
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/figure"
	"github.com/cheapgo/cheap/internal/result"
)

// A mark is a letter behind a figure, and its meaning.
type mark struct{ letter, text string }

// letterOf returns the letter for a text. A new text is added to the legend.
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

// publishedColumns returns a column for each source of the rows' figures. If a
// source has several kinds of figures ("collector off"), a letter behind a figure
// says which kind it is, and the legend explains the letter. If a row has two
// figures of one source, each kind has a column.
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
				text := figure.Exact(p.Ns)
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

// publishedHeads returns a function that returns the head of a figure's column:
// the name of the source, or the kind if a row has two figures of the source.
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

// sourceName returns the name of a source without the kind of figure.
func sourceName(source string) string {
	name, _, _ := strings.Cut(source, ", ")
	return name
}

// marks writes the meaning of the letters behind figures.
func (t *texter) marks(legend []mark) {
	for _, m := range legend {
		t.out.WriteString(t.hang("  "+m.letter+"  ", "     ", m.text))
	}
}
