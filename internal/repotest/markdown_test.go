package repotest

import (
	"regexp"
	"strings"
	"testing"
)

// documents are the files whose claims are tested.
var documents = []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/internals.md", "docs/decisions.md", "docs/guide.md", "docs/reference/figures.md", "docs/porting.md", "docs/memory.md", "docs/tools.md", "docs/limits.md", "docs/reference/json.md", "vet/internal/corpus/results.md", "docs/reference/alternatives.md", "docs/mistakes.md", "docs/reference/metrics.md", "SECURITY.md", "RELEASING.md", "docs/security-review.md", "cmem/README.md", "inspect/README.md", "vet/README.md", "x/cgoalloc/README.md", "x/otel/README.md", "x/prometheus/README.md", "x/statsviz/README.md", "examples/cache/README.md", "x/arrow/README.md", "docs/proof.md", "proof/README.md", "proof/pebble/README.md", "proof/badger/README.md", "proof/treesitter/README.md", "proof/geos/README.md", "proof/sqlite/README.md", "proof/arrow/README.md"}

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
