package tree_sitter

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/cheapgo/cheap/own"
)

// TestMain collects all the time during the tests. Behind them it waits until all they have made is
// freed.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1)
	code := m.Run()
	for deadline := time.Now().Add(5 * time.Minute); ; runtime.GC() {
		live := ""
		for _, p := range own.Pools() {
			if s := p.Stats(); s.Live > 0 {
				live += fmt.Sprintf(" %d %s", s.Live, p.Name)
			}
		}
		if live == "" {
			break
		}
		if time.Now().After(deadline) {
			fmt.Println("not freed:" + live)
			code = 1
			break
		}
	}
	os.Exit(code)
}
