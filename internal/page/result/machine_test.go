package result

import (
	"os"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

func TestHugePages(t *testing.T) {
	file := t.TempDir() + "/enabled"
	testcall.Must(t, os.WriteFile(file, []byte("always [madvise] never\n"), 0o666))
	if got := hugePages(file); got != "madvise" {
		t.Errorf("mode is %q, want madvise", got)
	}
	if got := hugePages(file + ".missing"); got != "" {
		t.Errorf("mode without a file is %q", got)
	}
}
