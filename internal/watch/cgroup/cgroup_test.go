package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestNear has a charge near the limit. What the kernel may drop is read again there, sooner than the limit is.
func TestNear(t *testing.T) {
	root, now := t.TempDir(), time.Unix(1_790_000_000, 0)
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		testcall.Must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)))
	}
	const limit, db = 1_000_000_000, "sys/fs/cgroup/a/db/memory."
	const files, clean = "inactive_file 10000000\nactive_file 290000000\n", "file_mapped 50000000\nfile_dirty 20000000\nfile_writeback 1\n"
	write("proc/self/cgroup", "0::/a\n")
	write("sys/fs/cgroup/a/memory.max", "1000000000")
	write("sys/fs/cgroup/a/memory.current", "1000000000")
	write("sys/fs/cgroup/a/memory.stat", "inactive_file 1\n")
	write(db+"stat", files+"file_mapped 0\nfile_dirty 0\nfile_writeback 0\n")
	write(db+"current", "310000000")
	all := Open(root)
	if g := all.Tightest(now, time.Hour); g.Limit != limit || g.Used() != limit-1 {
		t.Fatalf("%d of %d are used", g.Used(), g.Limit)
	}
	write("sys/fs/cgroup/a/memory.max", "5") // is not read for an hour
	for _, row := range []struct {
		stat, min string
		drops     int64
	}{
		{files + clean, "0", 229999999},
		{files, "0", 10000000}, // a kernel that does not say what is mapped, or a sandbox
		{files + clean, "100000000", 139999999},
		{files + clean, "max", 0},
		{"inactive_file 0\n", "0", 0},
	} {
		write("sys/fs/cgroup/a/memory.stat", row.stat)
		write(db+"min", row.min) // of which db may lose 10 MB more, which are of no file
		all.List[0].cache = 1
		now = now.Add(time.Minute)
		if g := all.Tightest(now, time.Hour); g.Limit != limit || g.Used() != limit-row.drops {
			t.Errorf("%+v: %d bytes are used of %d", row, g.Used(), g.Limit)
		}
	}
}
