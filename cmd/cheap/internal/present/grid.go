package present

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A grid is a table with aligned columns. The name of a group stands above its
// columns.
type grid struct {
	columns []column
	breaks  map[int]bool // rows with an empty line before them
}

// A column has a cell in each row of its grid.
type column struct {
	group string
	head  string // is broken at spaces, and behind hyphens and slashes
	left  bool   // aligned to the left, as text is; numbers are aligned to the right
	cells []cell
}

type cell struct {
	text  string
	style style
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
	width := max(cells, headWidth)
	var lines []string
	line := ""
	for _, word := range strings.Fields(c.head) {
		between := " "
		for _, part := range splitWord(word) {
			switch {
			case line == "":
				line = part
			case length(line+between+part) <= width:
				line += between + part
			default:
				lines, line = append(lines, line), part
			}
			between = ""
		}
	}
	return append(lines, line)
}

// splitWord returns the parts of a word of a head between which it can be broken.
func splitWord(word string) []string {
	var parts []string
	for word != "" {
		end := strings.IndexAny(word, "-/") + 1
		if end == 0 {
			end = len(word)
		}
		parts, word = append(parts, word[:end]), word[end:]
	}
	return parts
}

// widths returns the width of each column. If the name of a group is wider than
// its columns, the first of them is widened.
func (g *grid) widths() []int {
	widths := make([]int, len(g.columns))
	for i := range g.columns {
		widths[i] = g.columns[i].width()
	}
	for _, s := range g.groups() {
		// The name has a space and a dash on either side.
		if lack := length(s.name) + 4 - spanWidth(widths, s.from, s.to); lack > 0 && s.name != "" {
			widths[s.from] += lack
		}
	}
	return widths
}

// A columnGroup is the columns from up to, but not including, to.
type columnGroup struct {
	name     string
	from, to int
}

func (g *grid) groups() []columnGroup {
	var groups []columnGroup
	for i, c := range g.columns {
		if n := len(groups); n > 0 && groups[n-1].name == c.group {
			groups[n-1].to = i + 1
			continue
		}
		groups = append(groups, columnGroup{c.group, i, i + 1})
	}
	return groups
}

func spanWidth(widths []int, from, to int) int {
	sum := (to - from - 1) * len(gap)
	for _, w := range widths[from:to] {
		sum += w
	}
	return sum
}

// width returns how wide the grid is.
func (g *grid) width() int {
	widths := g.widths()
	return spanWidth(widths, 0, len(widths))
}

// text returns the lines of the grid.
func (g *grid) text(p painter) string {
	widths := g.widths()
	var out strings.Builder
	g.writeGroups(&out, p, widths)
	g.writeHeads(&out, p, widths)
	for i := range g.columns[0].cells {
		if g.breaks[i] {
			out.WriteByte('\n')
		}
		line := make([]cell, len(g.columns))
		for j, c := range g.columns {
			line[j] = c.cells[i]
		}
		g.writeLine(&out, p, widths, line)
	}
	return out.String()
}

// writeGroups writes the names of groups, each in the middle of a rule over its
// columns.
func (g *grid) writeGroups(out *strings.Builder, p painter, widths []int) {
	line, named := "", false
	for i, s := range g.groups() {
		if i > 0 {
			line += gap
		}
		w := spanWidth(widths, s.from, s.to)
		if s.name == "" {
			line += strings.Repeat(" ", w)
			continue
		}
		named = true
		dashes := w - length(s.name) - 2
		line += strings.Repeat("─", dashes/2) + " " + s.name + " " + strings.Repeat("─", dashes-dashes/2)
	}
	if named {
		out.WriteString(p.paint(dim, strings.TrimRight(line, " ")))
		out.WriteByte('\n')
	}
}

// writeHeads writes the heads of the columns, with their last lines side by side.
func (g *grid) writeHeads(out *strings.Builder, p painter, widths []int) {
	heads := make([][]string, len(g.columns))
	high := 0
	for i := range g.columns {
		heads[i] = g.columns[i].headLines(widths[i])
		high = max(high, len(heads[i]))
	}
	for l := range high {
		line := make([]cell, len(heads))
		for i, head := range heads {
			if at := l - (high - len(head)); at >= 0 {
				line[i] = cell{head[at], bold}
			}
		}
		g.writeLine(out, p, widths, line)
	}
}

// writeLine writes a line of cells, without spaces at its end.
func (g *grid) writeLine(out *strings.Builder, p painter, widths []int, line []cell) {
	blank := 0 // spaces before the next text
	for i, c := range line {
		text := strings.TrimRight(c.text, " ")
		before, after := widths[i]-length(c.text), length(c.text)-length(text)
		if g.columns[i].left {
			before, after = 0, widths[i]-length(text)
		}
		blank += before
		if text != "" {
			out.WriteString(strings.Repeat(" ", blank))
			out.WriteString(p.paint(c.style, text))
			blank = 0
		}
		blank += after + len(gap)
	}
	out.WriteByte('\n')
}

// align adds spaces to cells that have none of the marks if other cells have one.
// The marks are of the same length.
func align(cells []cell, marks ...string) {
	isMarked := func(c cell) bool {
		return slices.ContainsFunc(marks, func(m string) bool { return strings.HasSuffix(c.text, m) })
	}
	if !slices.ContainsFunc(cells, isMarked) {
		return
	}
	for i, c := range cells {
		if c.text != "" && !isMarked(c) {
			cells[i].text += strings.Repeat(" ", length(marks[0]))
		}
	}
}
