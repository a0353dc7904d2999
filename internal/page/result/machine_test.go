package result

import (
	"os"
	"testing"
)

func TestHugePages(t *testing.T) {
	file := t.TempDir() + "/enabled"
	if err := os.WriteFile(file, []byte("always [madvise] never\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := hugePages(file); got != "madvise" {
		t.Errorf("mode is %q, want madvise", got)
	}
	if got := hugePages(file + ".missing"); got != "" {
		t.Errorf("mode without a file is %q", got)
	}
}
