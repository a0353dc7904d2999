package inspect

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/cheapgo/cheap/inspect/internal/collect"
	"github.com/cheapgo/cheap/inspect/internal/suspects"
	"github.com/cheapgo/cheap/internal/page/pagejson"
	"github.com/cheapgo/cheap/internal/watch/leaks"
)

var enable sync.Once

// EnableLeaks sets the level of all pools to [own.LeaksSampled] for which [own.SetLeakLevel] has set none, and
// registers a profile with package [runtime/pprof]: [net/http/pprof] shows it as
// /debug/pprof/cheapleak. It has what [WriteLeaks] writes, which collects first, and with debug=1
// what [WriteSuspects] writes. EnableLeaks may be called again.
//
// It is best called at the beginning of main: owners that were made before are counted, but who
// made them is not known.
func EnableLeaks() {
	leaks.SetBase(leaks.Sampled)
	enable.Do(register)
}

// Collect collects until the collector finds no more owners, and what it found is released:
// until three collections in a row have changed nothing, and 30 times at most. It does not wait
// for releases that need a call of [own.Queue.Drain]. If ctx is done before, it returns its error.
func Collect(ctx context.Context) error { return collect.All(ctx) }

// WriteSuspects writes as text who made the open owners of all pools and memories, the most bytes first,
// and then who made owners that the collector had to release. It does not collect: owners that
// the program has forgotten, and the collector has not yet found, are open. It reads the
// entries of all pools, which takes about 20 ns for each.
func WriteSuspects(w io.Writer) error {
	all := suspects.Read()
	var text strings.Builder
	live, bytes := int64(0), int64(0)
	for _, s := range all {
		live += s.Live
		bytes += s.Bytes
	}
	fmt.Fprintf(&text, "%s open, %s bytes\n", digits(live), digits(bytes))
	for _, s := range all {
		text.WriteByte('\n')
		writeSuspect(&text, &s)
	}
	if more := leaksAdvice(); more != "" {
		fmt.Fprintf(&text, "\n%s\n", more)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// leaksAdvice says how the stacks of the pools are recorded whose level is [own.LeaksOff], or
// nothing if there are none.
func leaksAdvice() string {
	const named = 5
	var off []string
	more := 0
	for _, p := range leaks.ReadPools() {
		name := p.Name
		if name == "" {
			name = "a pool without a name"
		}
		switch {
		case p.Level != leaks.Off || slices.Contains(off, name):
		case len(off) == named:
			more++
		default:
			off = append(off, name)
		}
	}
	if len(off) == 0 {
		return ""
	}
	list := strings.Join(off, ", ")
	if more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return "No stacks are recorded of the owners of " + list +
		". inspect.EnableLeaks() records one in 128 from then on, own.SetLeakLevel sets another level," +
		" and so does the environment variable CHEAP_LEAKS, as in CHEAP_LEAKS=sampled."
}

// writeSuspect writes one suspect.
func writeSuspect(text *strings.Builder, s *pagejson.Suspect) {
	fmt.Fprintf(text, "%s: %s open, %s bytes", s.Pool, digits(s.Live), digits(s.Bytes))
	if s.Label != "" {
		fmt.Fprintf(text, ", labeled %q", s.Label)
	}
	if s.Age > 0 {
		fmt.Fprintf(text, ", the oldest for %v", s.Age)
	}
	if s.Samples > 0 && s.Samples != s.Live {
		fmt.Fprintf(text, " (estimated from %s)", digits(s.Samples))
	}
	text.WriteByte('\n')
	if s.Made > 0 {
		fmt.Fprintf(text, "%s made since recording began, %s closed, %s released by the collector",
			digits(s.Made), digits(s.Closed), digits(s.Collected))
		if s.MissingClose {
			text.WriteString(": a Close is missing")
		}
		text.WriteByte('\n')
	}
	if s.Stack == "" {
		text.WriteString("who made them was not recorded\n")
	} else {
		text.WriteString("made by\n" + s.Stack)
	}
	for i, u := range s.Uses {
		if i == 0 {
			text.WriteString("one of them was last used by\n" + u)
		} else {
			text.WriteString("and before by\n" + u)
		}
	}
}

// digits returns a number with a comma before each three digits.
func digits(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
