//go:build asan

package cheap

import (
	"os"
	"path"
	"reflect"
	"runtime"
	"strings"
	"testing"

	_ "github.com/cheapgo/cheap/asan"
	"github.com/cheapgo/cheap/internal/heap"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// The tests of this package look at how heaps work that are not checked. So only the regions
// and the free memory of arenas and pools are told to the sanitizer here, unless
// CHEAP_TEST_ASAN is set.
func init() {
	if os.Getenv("CHEAP_TEST_ASAN") == "" {
		heap.Unwatch()
	}
}

// TestWatched runs tests that do not look into the heap once more, in a process where all heaps are
// watched.
func TestWatched(t *testing.T) {
	if os.Getenv("CHEAP_TEST_ASAN") != "" {
		return
	}
	var names []string
	for _, test := range []func(*testing.T){
		TestAttacks, TestHammerPooledArenas, TestArenaModel, TestArenaKeepsChunks, TestFixedBlockModel,
		TestFixedBlockNested, TestFallbackTiers, TestAppend,
	} {
		names = append(names, path.Ext(runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name())[1:])
	}
	cmd := testchild.Program(t.Context(), os.Args[0], "-test.v", "-test.run=^("+strings.Join(names, "|")+")$")
	cmd.Env = append(os.Environ(), "CHEAP_TEST_ASAN=1")
	out, err := cmd.CombinedOutput()
	for _, name := range names {
		if err != nil || !strings.Contains(string(out), "\n--- PASS: "+name+" ") {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
}
