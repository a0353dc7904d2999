package pace

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/watch/cgroup"
)

// fileWriter returns a function that writes files below root.
func fileWriter(t *testing.T, root string) func(name, text string) {
	return func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		testcall.Must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)))
	}
}

// TestCgroupLimit reads cgroup files below a directory of its own.
func TestCgroupLimit(t *testing.T) {
	const v1 = "9:name=systemd:/\n4:cpu,cpuacct:/a\n3:hugetlb,memory:/a/b\n0::/c\n"
	for _, row := range []struct {
		name  string
		self  string // /proc/self/cgroup
		files map[string]string
		limit int64
	}{
		{"nothing", "", nil, 0},
		{"v2", "0::/a/b\n", map[string]string{"a/b/memory.max": "1000000\n"}, 1000000},
		{"v2, at the root, as in a container", "0::/\n", map[string]string{"memory.max": "5000000\n"}, 5000000},
		{"v2, slowed down from a smaller number on", "0::/a/b\n", map[string]string{"a/b/memory.max": "3000000\n", "a/b/memory.high": "2000000\n"}, 2000000},
		{"v2, slowed down above it", "0::/a/b\n", map[string]string{"a/b/memory.max": "1000000\n", "a/b/memory.high": "2000000\n"}, 1000000},
		{"v2, slowed down alone", "0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/b/memory.high": "2000000\n"}, 2000000},
		{"v2, slowed down, but not here", "0::/a/b\n", map[string]string{"a/b/memory.max": "1000000\n", "a/b/memory.high": "max\n"}, 1000000},
		{"v2, max", "0::/a/b\n", map[string]string{"a/b/memory.max": "max\n"}, 0},
		{"v2, the outer one is smaller", "0::/a/b\n", map[string]string{"a/b/memory.max": "2000000\n", "a/memory.max": "1000000\n"}, 1000000},
		{"v2, the inner one is smaller", "0::/a/b/c\n", map[string]string{"a/b/c/memory.max": "1000000\n", "a/b/memory.max": "max\n", "a/memory.max": "2000000\n"}, 1000000},
		{"v2, the middle one alone", "0::/a/b/c\n", map[string]string{"a/b/memory.max": "3000000\n"}, 3000000},
		{"v2, another's", "0::/a/b\n", map[string]string{"a/c/memory.max": "1000000\n"}, 0},
		{"v2, out of what can be seen", "0::/../../a\n", map[string]string{"a/memory.max": "1000000\n"}, 1000000},
		{"v2, garbage", "0::/a\n", map[string]string{"a/memory.max": "much\n", "memory.max": "-5\n"}, 0},
		{"v2, empty", "0::/a\n", map[string]string{"a/memory.max": "", "memory.max": "7000000"}, 7000000},
		{"v1", v1, map[string]string{"memory/a/b/memory.limit_in_bytes": "1000000\n"}, 1000000},
		{"v1, mounted at the root, as in a container", v1, map[string]string{"memory/memory.limit_in_bytes": "2000000\n"}, 2000000},
		{"v1, none", v1, map[string]string{"memory/a/b/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		{"v1, of another kind", "4:cpu,memoryless:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "1000000\n"}, 0},
		{"v1 and v2", v1, map[string]string{"memory/a/memory.limit_in_bytes": "3000000\n", "c/memory.max": "1000000\n"}, 1000000},
		{"a path with a colon", "0::/a:b\n", map[string]string{"a:b/memory.max": "1000000\n"}, 1000000},
		{"too large to be meant", "0::/\n", map[string]string{"memory.max": "99999999999999999999\n"}, 0},
		{"garbage", "\n\n::\n0\n0:\nmemory\n0::\x00\n", map[string]string{"memory.max": "max"}, 0},
		{"no end of line", "0::/a", map[string]string{"a/memory.max": "1000000"}, 1000000},
	} {
		t.Run(row.name, func(t *testing.T) {
			root := t.TempDir()
			write := fileWriter(t, root)
			if row.self != "" {
				write("proc/self/cgroup", row.self)
			}
			for name, text := range row.files {
				write(filepath.Join("sys/fs/cgroup", name), text)
				usage := strings.NewReplacer("memory.max", "memory.current", "memory.high", "memory.current", "limit_in", "usage_in").Replace(name)
				write(filepath.Join("sys/fs/cgroup", usage), "1000\n")
			}
			var least atomic.Int64
			u, err := openCgroupUsage(root, &least)
			if least.Load() != row.limit || (u == nil) != (row.limit == 0) {
				t.Errorf("the limit is %d, want %d", least.Load(), row.limit)
			}
			if row.limit != 0 {
				from := u.(*cgroupUsage).from(row.limit)
				if text := row.files[strings.TrimPrefix(from, root+"/sys/fs/cgroup/")]; cgroup.Number([]byte(text)) != row.limit {
					t.Errorf("the limit is said to be in %s, which has %q", from, text)
				}
				return
			}
			if row.files == nil && err == nil {
				t.Error("no error, and nothing can be read")
			}
			write("proc/self/cgroup", row.self)
			write("sys/fs/cgroup/cgroup.controllers", "")
			if _, err := openCgroupUsage(root, &least); err != nil {
				t.Errorf("%v, and there is no limit", err)
			}
		})
	}
}

// TestNeighbour has another process of the cgroup grow, by files of a root of its own, and then this
// process. What the neighbour takes is gone, and no room is kept for more of it.
func TestNeighbour(t *testing.T) {
	const limit = 1 << 30
	root := t.TempDir()
	write := fileWriter(t, root)
	used := int64(200 * mib)
	use := func() { write("sys/fs/cgroup/a/memory.current", strconv.FormatInt(used, 10)) }
	write("proc/self/cgroup", "0::/a\n")
	write("sys/fs/cgroup/a/memory.max", strconv.Itoa(limit))
	write("sys/fs/cgroup/a/memory.stat", "")
	use()
	var least atomic.Int64
	u, _ := openCgroupUsage(root, &least)
	if u == nil {
		t.Fatal("no usage")
	}
	debug.FreeOSMemory() // what tests before have left is not given back meanwhile
	var r reader
	g, v := new(gauge), see(r.read(), u)
	g.first(sample{at: v.moment()}, v)
	note(g, sample{}, v)
	g.excess = 0
	g.read(see(r.read(), u))
	before, excess := g.room, g.excess

	used += 300 * mib
	use()
	g.read(see(r.read(), u))
	if d := before - g.room; g.excess > excess+16*mib || d < 284*mib || d > 316*mib {
		t.Errorf("a neighbour has taken 300 MiB: there is room for %d MiB less, of these an excess of %d MiB", d/mib, (g.excess-excess)/mib)
	}

	memory, err := syscall.Mmap(-1, 0, 150*mib, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	testcall.Must(t, err)
	defer syscall.Munmap(memory)
	for i := 0; i < len(memory); i += 4 << 10 {
		memory[i] = 1
	}
	used += 150 * mib
	use()
	g.read(see(r.read(), u))
	if g.excess < 100*mib {
		t.Errorf("this process has taken 150 MiB that nobody has declared: the excess is %d MiB", g.excess/mib)
	}

	// The cgroup is gone. What is resident still counts.
	write("sys/fs/cgroup/a/memory.current", "")
	if n, _ := u.read(); n < 150*mib {
		t.Errorf("%d bytes are used where that cannot be read", n)
	}
}
