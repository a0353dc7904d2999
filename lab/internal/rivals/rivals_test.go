package rivals

import (
	"testing"

	"github.com/cheapgo/cheap/internal/replay"
	"github.com/cheapgo/cheap/internal/replay/recorded"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestVerify replays the traces of the project on each rival, with every block verified.
func TestVerify(t *testing.T) {
	infos := Available()
	if have := len(infos); have < 3 {
		t.Fatalf("only %d allocators", have)
	}
	for _, name := range recorded.Names {
		tr, err := recorded.Read(name)
		testcall.Must(t, err)
		for _, info := range infos {
			t.Run("trace="+name+"/allocator="+info.Name, func(t *testing.T) {
				testcall.Want(t, replay.Verify(t.Context(), tr, info))
			})
		}
	}
}
