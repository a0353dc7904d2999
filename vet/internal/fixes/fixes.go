// Package fixes applies the fixes of findings to files.
package fixes

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"go/token"
	"os"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// Files are the files that fixes change. The zero value has none.
type Files struct {
	edits map[string][]edit
}

// An edit replaces the bytes from one offset of a file to another.
type edit struct {
	from, to int
	text     string
}

// overlaps reports whether two edits cannot both be made. Insertions at one place can: the one that was added first comes first.
func (e edit) overlaps(other edit) bool {
	if e.from == e.to || other.from == other.to {
		return other.from < e.from && e.from < other.to || e.from < other.from && other.from < e.to
	}
	return e.from < other.to && other.from < e.to
}

// Add adds a fix. It reports false, and adds nothing of it, if a part of it overlaps another fix. An edit that another fix has as well,
// such as an import, is made once.
func (f *Files) Add(fset *token.FileSet, fix analysis.SuggestedFix) bool {
	added := map[string][]edit{}
	for _, e := range fix.TextEdits {
		from := fset.PositionFor(e.Pos, false)
		to := from.Offset
		if e.End.IsValid() {
			to = fset.PositionFor(e.End, false).Offset
		}
		one := edit{from.Offset, to, string(e.NewText)}
		if slices.Contains(f.edits[from.Filename], one) {
			continue
		}
		if slices.ContainsFunc(f.edits[from.Filename], one.overlaps) {
			return false
		}
		added[from.Filename] = append(added[from.Filename], one)
	}
	for name, edits := range added {
		if f.edits == nil {
			f.edits = map[string][]edit{}
		}
		f.edits[name] = append(f.edits[name], edits...)
	}
	return true
}

// Apply returns the files with all fixes, as gofmt writes them. A file that was not as gofmt writes it keeps the lines that no fix changes.
func (f *Files) Apply() (map[string][]byte, error) {
	texts := map[string][]byte{}
	for name, edits := range f.edits {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		edits = slices.Clone(edits)
		slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) })
		var fixed []byte
		at := 0
		for _, e := range edits {
			fixed = append(append(fixed, text[at:e.from]...), e.text...)
			at = e.to
		}
		fixed = append(fixed, text[at:]...)
		formatted, err := format.Source(fixed)
		if err != nil {
			return nil, fmt.Errorf("the fixes of %s: %w", name, err)
		}
		if before, err := format.Source(text); err == nil && bytes.Equal(before, text) {
			fixed = formatted
		}
		texts[name] = fixed
	}
	return texts, nil
}
