package rivals

import (
	"testing"

	"github.com/cheapgo/cheap/internal/replay"
	"github.com/cheapgo/cheap/internal/replay/recorded"
)

// TestVerify replays the traces of the project on each rival, with every block verified.
func TestVerify(t *testing.T) {
	infos := Available()
	if have := len(infos); have < 3 {
		t.Fatalf("only %d allocators", have)
	}
	for _, name := range recorded.Names {
		tr, err := recorded.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			t.Run("trace="+name+"/allocator="+info.Name, func(t *testing.T) {
				if err := replay.Verify(t.Context(), tr, info); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
