package repotest

import (
	"path"
	"testing"
)

// header is the file that libc/cxx writes, and of which bindings have copies.
const header = "libc/cxx/cheap.hpp"

// TestCopiesOfTheHeader compares the copies in the tree with the original.
func TestCopiesOfTheHeader(t *testing.T) {
	t.Parallel()
	want, copies := read(t, header), 0
	for _, name := range files(t) {
		if path.Base(name) != path.Base(header) || name == header {
			continue
		}
		copies++
		if read(t, name) != want {
			t.Errorf("%s is not %s; start go run github.com/cheapgo/cheap/libc/cxx in its folder", name, header)
		}
	}
	if copies == 0 {
		t.Errorf("no package has a copy of %s", header)
	}
}
