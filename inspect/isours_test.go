package inspect

import "testing"

// TestIsOurs names functions of the drop-in, by both of its paths.
func TestIsOurs(t *testing.T) {
	for function, want := range map[string]bool{
		"github.com/cheapgo/cheap.(*Heap).Malloc":                             true,
		"github.com/cheapgo/cheap/own/internal/intake.(*Intake).Put":          true,
		"github.com/cheapgo/cheap/x/arrow.(*Allocator).Allocate":              true,
		"github.com/cheapgo/cheap/x/cgoalloc.(*DefaultAllocator).Malloc":      true,
		"github.com/CannibalVox/cgoalloc.CString":                             true,
		"github.com/CannibalVox/cgoparam.GetAlloc":                            false,
		"github.com/cheapgo/cheap/x/otel.Register":                            false,
		"github.com/cheapgo/cheap/examples/cache/internal/cache.(*Cache).Set": false,
		"main.main": false,
	} {
		if got := isOurs(function); got != want {
			t.Errorf("isOurs(%q) is %v", function, got)
		}
	}
}
