package blackbox

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A tree has the files of cgroups, below a root of its own.
type tree struct {
	t    *testing.T
	root string
}

func newTree(t *testing.T, self string) tree {
	tr := tree{t, t.TempDir()}
	tr.write("proc/self/cgroup", self)
	return tr
}

func (tr tree) write(name, text string) {
	tr.t.Helper()
	name = filepath.Join(tr.root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr tree) number(name string, n int64) {
	tr.t.Helper()
	tr.write(name, strconv.FormatInt(n, 10)+"\n")
}

// TestCharge reads the files of both versions. What counts is the cgroup that leaves least room.
func TestCharge(t *testing.T) {
	for _, row := range []struct{ name, self, mount, usage, limit, inactive, stat, kills string }{
		{"v2", "0::/a/b\n", "sys/fs/cgroup/", "memory.current", "memory.max", "inactive_file", "active_file 90\nfile_mapped 20\nfile_dirty 15\nfile_writeback 5\n", "memory.events"},
		{"v1", "9:name=systemd:/\n4:memory:/a/b\n0::/\n", "sys/fs/cgroup/memory/", "memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file", "active_file 900\ntotal_active_file 90\ntotal_mapped_file 20\ntotal_dirty 15\ntotal_writeback 5\n", "memory.oom_control"},
	} {
		t.Run(row.name, func(t *testing.T) {
			tr := newTree(t, row.self)
			at := time.Unix(1_790_000_000, 0)
			var c charge
			look := func(d time.Duration, used, limit int64) {
				t.Helper()
				at = at.Add(d)
				if u, l := c.look(tr.root, at); u != used || l != limit {
					t.Errorf("%d of %d, want %d of %d", u, l, used, limit)
				}
			}
			look(0, 0, 0)
			if c.kills() != nil {
				t.Error("kills without a cgroup")
			}
			b, a := row.mount+"a/b/", row.mount+"a/"
			for _, dir := range []string{a, b} {
				tr.number(dir+row.usage, 500)
				tr.write(dir+row.limit, "max\n")
				tr.write(dir+"memory.stat", "cache 5\n"+row.inactive+" 0\n")
				tr.write(dir+row.kills, "oom 3\noom_kill 2\n")
			}
			look(time.Second, 0, 0) // the files are opened once in a minute
			look(openEvery, 0, 0)
			tr.number(b+row.limit, 1000)
			look(limitsEvery, 500, 1000)
			tr.number(b+row.usage, 600)
			look(time.Millisecond, 600, 1000)
			tr.number(a+row.limit, 550)
			look(limitsEvery, 500, 550)
			tr.number(a+row.limit, 5000)
			tr.number(b+row.usage, 700)
			look(limitsEvery, 700, 1000)
			// Cached files fill the cgroup: they are noticed before the limit seems near.
			tr.number(b+row.usage, 950)
			tr.write(b+"memory.stat", row.inactive+" 300\n")
			look(limitsLeast, 650, 1000)
			tr.write(b+"memory.stat", row.inactive+" 100\n"+row.stat)
			look(limitsEvery, 800, 1000) // files that are read often, but neither mapped nor to be written
			tr.write(b+row.limit, "9223372036854771712\n")
			tr.write(a+row.limit, "max\n")
			look(limitsEvery, 0, 0)

			k := c.kills()
			if k == nil || k.Count != 2 || killedSince(&Record{Kills: k}) != 0 {
				t.Fatalf("%+v", k)
			}
			tr.write(b+row.kills, "oom_kill 5\n")
			if n := killedSince(&Record{Kills: k}); n != 3 {
				t.Errorf("%d are killed since", n)
			}
			// The cgroup is made again.
			other := *k
			other.Inode++
			for _, r := range []*Record{{Kills: &other}, {Kills: &Kills{File: k.File, Inode: k.Inode, Count: 9}}, {Kills: &Kills{File: k.File + "x"}}, {}, nil} {
				if n := killedSince(r); n != -1 {
					t.Errorf("%+v: %d", r, n)
				}
			}
		})
	}
}

// TestNoRegularFile has a named pipe in place of a box, and a box that names a device: neither is read.
func TestNoRegularFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	testcall.Must(t, syscall.Mkfifo(pipe, 0o600))
	f, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that nobody waits for a writer
	testcall.Must(t, err)
	defer f.Close()
	if _, err := ReadReport(pipe); !errors.Is(err, ErrNoBox) {
		t.Errorf("a pipe: %v", err)
	}
	if k := readKills(os.DevNull); k != nil {
		t.Errorf("a device has a count: %+v", k)
	}
}
