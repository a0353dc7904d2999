package present

import (
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/headline"
	"github.com/cheapgo/cheap/internal/result"
)

// headlines writes what the report has found, before its tables and at its end: the last lines
// are what a terminal shows.
func (t *texter) headlines(r *result.Report) {
	all := headline.Of(r)
	if len(all) == 0 {
		return
	}
	t.title("in short", "what C memory costs here with cheap, and without it")
	width := 0
	for _, f := range all {
		width = max(width, length(gains(f)))
	}
	for _, f := range all {
		word := gains(f)
		style := bold
		if f.Gain {
			style = green
		}
		lead := word + strings.Repeat(" ", width+2-length(word))
		text := f.What + ": " + f.Ours.String() + ", " + f.Theirs.String()
		if f.Doubt {
			text += doubtMark
		}
		t.out.WriteString(t.p.paint(style, word) + strings.TrimPrefix(t.hang(lead, strings.Repeat(" ", width+2), text), word))
	}
}

// gains writes the factor of a finding and what it means.
func gains(f headline.Finding) string { return strings.TrimSpace(f.Factor + " " + f.Claim) }
