package repotest

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents returns the Markdown files of the checkout. One in testdata becomes another by a test.
func documents(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(files(t)), func(name string) bool {
		return path.Ext(name) != ".md" || strings.Contains(name, "testdata/")
	})
}

// A document is a Markdown file, taken apart.
type document struct {
	name   string
	blocks []codeBlock
	spans  []span   // code within a line
	links  []span   // their targets
	titles []string // as targets of links within the file
}

// A codeBlock is the text between two fences.
type codeBlock struct {
	lang string
	line int // of the opening fence, from 1
	text string

	before bool // the text above ends with "Before:", or with "Before, and after:"
}

// A span is a part of a line.
type span struct {
	line int
	text string
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	link     = regexp.MustCompile(`\]\(([^)]+)\)`)
	notTitle = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// parseDocument returns a document of the checkout.
var parseDocument = kept(func(t *testing.T, name string) document {
	t.Helper()
	d := document{name: name}
	var open *codeBlock
	above := ""
	for i, line := range strings.Split(read(t, name), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			d.blocks = append(d.blocks, codeBlock{lang: fence, line: i + 1, before: strings.HasSuffix(above, "Before:") || strings.HasSuffix(above, "Before, and after:")})
			above = ""
			open = &d.blocks[len(d.blocks)-1]
		case isFence:
			open = nil
		case open != nil:
			open.text += line + "\n"
		default:
			if line != "" {
				above = line
			}
			if strings.HasPrefix(line, "#") {
				title := strings.ToLower(strings.TrimLeft(line, "# "))
				d.titles = append(d.titles, strings.ReplaceAll(notTitle.ReplaceAllString(title, ""), " ", "-"))
			}
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				d.spans = append(d.spans, span{i + 1, m[1]})
			}
			for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
				d.links = append(d.links, span{i + 1, m[1]})
			}
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the code block has no end", name, open.line)
	}
	return d
})
