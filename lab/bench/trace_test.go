//go:build cgo

package bench

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/replay"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/trace"
	"github.com/cheapgo/cheap/lab/internal/rivals"
)

var traces = flag.String("traces", filepath.Join("..", "..", "internal", "replay", "recorded", "*.fht.gz"), "compare on the traces that match this `pattern`")

// traceRows makes two rows of each trace.
func traceRows() []row {
	files, err := filepath.Glob(*traces)
	if err != nil || len(files) == 0 {
		panic("no traces match " + *traces)
	}
	var all []row
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		all = append(all,
			row{"trace-" + name + "/allocator=heap", "native", replayed(file, "heap", "native")},
			row{"trace-" + name + "/allocator=heap", "libc", replayed(file, "heap", "libc")})
	}
	return all
}

// replayed returns rounds that replay a trace on both allocators.
func replayed(file, ours, theirs string) func(testing.TB) func(turn int) float64 {
	return func(tb testing.TB) func(turn int) float64 {
		session := newSession(tb, file, ours, theirs)
		return func(turn int) float64 {
			took, err := session.Round(context.Background(), turn)
			if err != nil {
				tb.Fatal(err)
			}
			return float64(took[0]) / float64(took[1])
		}
	}
}

// newSession returns a session that replays a trace on the allocators that are named. It ends
// with the test.
func newSession(tb testing.TB, file string, allocators ...string) *replay.Session {
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	tr, err := trace.Read(f)
	if err != nil {
		tb.Fatal(err)
	}
	infos := make([]peers.Info, len(allocators))
	for i, name := range allocators {
		if infos[i], err = rivals.Lookup(name); err != nil {
			tb.Skip(err)
		}
	}
	session, err := replay.NewSession(tr, infos)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := session.Close(); err != nil {
			tb.Error(err)
		}
	})
	return session
}
