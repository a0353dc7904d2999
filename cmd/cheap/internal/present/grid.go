package present

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cheapgo/cheap/internal/result"
)

// A style is the number of an ANSI escape sequence. A text means the same without
// its style.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// A painter adds styles to text, or leaves the text as it is.
type painter bool

func (p painter) paint(s style, text string) string {
	if !p || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// A grid is a table with aligned columns.
type grid struct {
	columns []column
	breaks  map[int]bool // lines with an empty line before them
}

// A column has a cell in each line of its grid.
type column struct {
	head  string // is broken at spaces, and behind hyphens and slashes
	left  bool   // aligned to the left, as text is; numbers are aligned to the right
	cells []cell
}

type cell struct {
	text  string
	style style
}

// columnOf makes a column with a cell for each row.
func columnOf(head string, rows []result.Row, of func(*result.Row) cell) column {
	c := column{head: head}
	for i := range rows {
		c.cells = append(c.cells, of(&rows[i]))
	}
	return c
}

// names makes a column of texts.
func names(head string, rows []result.Row, of func(*result.Row) string) column {
	c := columnOf(head, rows, func(r *result.Row) cell { return cell{of(r), plain} })
	c.left = true
	return c
}

// gap is what stands between columns.
const gap = "  "

// headWidth is how wide the head of a column may be if its cells are narrower.
const headWidth = 10

func length(s string) int { return utf8.RuneCountInString(s) }

// width returns how wide the column is.
func (c *column) width() int {
	w := 0
	for _, cell := range c.cells {
		w = max(w, length(cell.text))
	}
	for _, line := range c.headLines(w) {
		w = max(w, length(line))
	}
	return w
}

// headLines breaks the head into lines about as wide as the cells.
func (c *column) headLines(cells int) []string {
	// A word ends with a space, a hyphen or a slash.
	var words []string
	for _, field := range strings.Fields(c.head) {
		for i, part := range strings.SplitAfter(strings.ReplaceAll(field, "/", "/-"), "-") {
			part = strings.ReplaceAll(part, "/-", "/")
			if i == 0 && len(words) > 0 {
				part = " " + part
			}
			words = append(words, part)
		}
	}
	var lines []string
	line := ""
	for _, word := range words {
		if line != "" && length(line+word) > max(cells, headWidth) {
			lines, line = append(lines, line), ""
		}
		if line += word; len(line) == len(word) {
			line = strings.TrimPrefix(line, " ")
		}
	}
	return append(lines, line)
}

// widths returns the width of each column, and of the grid.
func (g *grid) widths() (widths []int, all int) {
	for i := range g.columns {
		widths = append(widths, g.columns[i].width())
		all += widths[i] + len(gap)
	}
	return widths, all - len(gap)
}

// fit removes columns until the grid is narrow enough, in the order of their heads.
func (g *grid) fit(columns int, heads ...string) {
	for _, head := range heads {
		if _, width := g.widths(); width <= columns {
			return
		}
		g.columns = slices.DeleteFunc(g.columns, func(c column) bool { return c.head == head })
	}
}

// text returns the lines of the grid, with the last lines of heads side by side.
func (g *grid) text(p painter) string {
	widths, _ := g.widths()
	var out strings.Builder
	heads, high := make([][]string, len(g.columns)), 0
	for i := range g.columns {
		heads[i] = g.columns[i].headLines(widths[i])
		high = max(high, len(heads[i]))
	}
	for l := range high {
		g.writeLine(&out, p, widths, func(i int) cell {
			if at := l - (high - len(heads[i])); at >= 0 {
				return cell{heads[i][at], bold}
			}
			return cell{}
		})
	}
	for l := range g.columns[0].cells {
		if g.breaks[l] {
			out.WriteByte('\n')
		}
		g.writeLine(&out, p, widths, func(i int) cell { return g.columns[i].cells[l] })
	}
	return out.String()
}

// writeLine writes a line of cells, without spaces at its end.
func (g *grid) writeLine(out *strings.Builder, p painter, widths []int, at func(column int) cell) {
	blank := 0 // spaces before the next text
	for i := range g.columns {
		c := at(i)
		text := strings.TrimRight(c.text, " ")
		before, after := widths[i]-length(c.text), length(c.text)-length(text)
		if g.columns[i].left {
			before, after = 0, widths[i]-length(text)
		}
		blank += before
		if text != "" {
			out.WriteString(strings.Repeat(" ", blank) + p.paint(c.style, text))
			blank = 0
		}
		blank += after + len(gap)
	}
	out.WriteByte('\n')
}

// align adds spaces to the cells that do not end in the mark if others do.
func (c column) align(mark string) column {
	if slices.ContainsFunc(c.cells, func(c cell) bool { return strings.HasSuffix(c.text, mark) }) {
		for i, cell := range c.cells {
			if cell.text != "" && !strings.HasSuffix(cell.text, mark) {
				c.cells[i].text += strings.Repeat(" ", length(mark))
			}
		}
	}
	return c
}
