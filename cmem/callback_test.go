//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testenv"
)

// TestCallbacks has blocks that C has allocated below functions of Go that C has called, on the stack of
// a goroutine and in a thread of C, while a panic unwinds through C, and after a callback has moved the
// stack. Each stack goes on behind the callbacks.
func TestCallbacks(t *testing.T) {
	testenv.Skip(t, "musl", "the C part of a stack is only what has called malloc")
	t.Parallel()
	_, p := run(t, build(t, nil))
	all := stacks(p)
	const (
		deep   = "cwork_alloc cwork_deep cwork_deep cwork_deep cwork_deep _cgo_Cfunc_cwork_deep cwork._Cfunc_cwork_deep cwork.cworkGo "
		alloc  = "cwork_alloc cwork_deep _cgo_Cfunc_cwork_deep cwork._Cfunc_cwork_deep cwork.Alloc "
		back   = "_cgoexp_cworkGo cworkGo cwork_back "
		again  = back + "_cgo_Cfunc_cwork_back cwork._Cfunc_cwork_back cwork.cworkGo "
		call   = "cwork.cworkCall _cgoexp_cworkCall cworkCall cwork_calls cwork._Cfunc_cwork_calls cwork.Call "
		gone   = "cwork.cworkCall _cgoexp_cworkCall [called from C] cwork._Cfunc_cwork_calls cwork.Call " // the stack of C was used again
		main   = "main.main runtime.main runtime.goexit"
		thread = "back_thread [thread back ] cwork_back_thread _cgo_Cfunc_cwork_back_thread cwork._Cfunc_cwork_back_thread cwork.BackThread main.back " + main
		nested = "main.panics " + call + "main.main.func2 " + call + main
	)
	for _, row := range []struct {
		name  string
		bytes int64
		want  string
	}{
		{"callbacks within each other", 50_001, deep + again + back + "_cgo_Cfunc_cwork_back cwork._Cfunc_cwork_back cwork.Back main.back " + main},
		{"a thread of C", 50_002, deep + again + back + thread},
		{"no callback in that thread", 51_002, thread},
		{"a stack that has moved", 50_003, alloc + "main.back.func1 " + call + "main.back " + main},
		{"a panic", 50_004, alloc + "runtime.gopanic main.panics.func2 " + call + "main.panics " + main},
		{"a panic below callbacks", 50_004, alloc + "runtime.gopanic main.panics.func2 " + call + nested},
		{"recovered", 50_005, alloc + "main.panics.func1 runtime.gopanic main.panics.func2 " + gone + "main.panics " + main},
	} {
		found := false
		for s, bytes := range all {
			found = found || bytes == row.bytes && plain(s) == row.want
		}
		if !found {
			var near []string
			for s, bytes := range all {
				if bytes == row.bytes {
					near = append(near, plain(s))
				}
			}
			t.Errorf("%s: got\n%s\nwant\n%s", row.name, strings.Join(near, "\n"), row.want)
		}
	}
}

var hashes = regexp.MustCompile(`(_cgo_|_cgoexp_)[0-9a-f]{12}_`)

// plain returns a stack as stacks has it, without the paths of packages and what cgo makes of them, and
// without the functions of the C library that start a thread, which have names if there are debug files.
func plain(stack string) string {
	s := strings.ReplaceAll(stack, "github.com/cheapgo/cheap/cmem/internal/", "")
	s = hashes.ReplaceAllString(s, "$1")
	return strings.NewReplacer(" ?", "", " start_thread", "", " clone3", "", " clone", "").Replace(s)
}
