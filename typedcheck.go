package cheap

import "github.com/cheapgo/cheap/internal/pointerfree"

// checkPointerFree takes a nil *T and panics if a T may contain Go pointers. It
// is for a T that is not pointerfree.Known.
func checkPointerFree(op string, ptr any) {
	if reason := pointerfree.Check(ptr); reason != "" {
		misuse(op, 0, "%s", reason)
	}
}
