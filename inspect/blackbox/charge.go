package blackbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A folder is that of a memory cgroup of the process, or of one around it, with the names of its files
// and of a line in memory.stat.
type folder struct{ path, usage, limit, cache, kills string }

// folders returns the cgroup of the process, and then those around it. root is the root of the file system.
// In a container /proc may have the names that cgroups have outside of it: these are not there.
func folders(root string) (all []folder) {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		// "0::/user.slice/x" in version 2, "5:memory:/x" in version 1.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		mount, f := "sys/fs/cgroup", folder{"", "memory.current", "memory.max", "inactive_file", "memory.events"}
		if parts[0] != "0" || parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			mount, f = "sys/fs/cgroup/memory", folder{"", "memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file", "memory.oom_control"}
		}
		for at := filepath.Clean("/" + parts[2]); ; at = filepath.Dir(at) {
			f.path = filepath.Join(root, mount, at)
			if _, err := os.Stat(filepath.Join(f.path, f.usage)); err == nil {
				all = append(all, f)
			}
			if at == "/" {
				break
			}
		}
	}
	return all
}

// A charge is what the cgroups of the process are charged, and may be. One goroutine at a time uses it.
type charge struct {
	folders []folder
	open    []*os.File // their files of usage; nil where there is none
	limits  []int64    // 0 where there is none
	caches  []int64    // what the kernel drops first
	read    time.Time  // when limits and caches were read
	buffer  [64]byte
}

// Limits and caches are read again after the first of these times, and after the second where there is
// little room: a file that is read or written fills it with what the kernel drops when there is need.
const limitsEvery, limitsLeast = time.Second, 100 * time.Millisecond

func newCharge(root string) *charge {
	c := &charge{folders: folders(root)}
	for _, f := range c.folders {
		file, _ := os.Open(filepath.Join(f.path, f.usage)) // nil after an error
		c.open = append(c.open, file)
	}
	c.limits, c.caches = make([]int64, len(c.folders)), make([]int64, len(c.folders))
	return c
}

// look returns the figures of the cgroup that leaves least room; 0 if none has a limit.
func (c *charge) look(now time.Time) (used, limit int64) {
	if now.Sub(c.read) >= limitsEvery {
		c.readLimits(now)
	}
	used, limit = c.least()
	if used > limit/4*3 && now.Sub(c.read) >= limitsLeast {
		c.readLimits(now)
		used, limit = c.least()
	}
	return used, limit
}

func (c *charge) least() (used, limit int64) {
	for i, file := range c.open {
		if c.limits[i] == 0 {
			continue
		}
		n, _ := file.ReadAt(c.buffer[:], 0) // the error is io.EOF, or nothing was read
		charged := max(0, numberIn(c.buffer[:n])-c.caches[i])
		if limit == 0 || c.limits[i]-charged < limit-used {
			used, limit = charged, c.limits[i]
		}
	}
	return used, limit
}

func (c *charge) readLimits(now time.Time) {
	for i, f := range c.folders {
		if c.limits[i] = readNumber(filepath.Join(f.path, f.limit), ""); c.limits[i] > 0 {
			c.caches[i] = readNumber(filepath.Join(f.path, "memory.stat"), f.cache)
		}
	}
	c.read = now
}

// close closes the files.
func (c *charge) close() {
	for _, f := range c.open {
		_ = f.Close() // it was only read
	}
}

// readNumber returns the number in a file: behind a name and a space, or if name is "" the only one. It
// returns 0 where there is none, and for one that is too large to be a limit.
func readNumber(path, name string) int64 {
	text, err := os.ReadFile(path)
	if err != nil || name == "" {
		return numberIn(text)
	}
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			return numberIn(value)
		}
	}
	return 0
}

func numberIn(text []byte) int64 {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil || n < 0 || n >= 1<<60 {
		return 0 // such as "max", or nearly 1<<63 in version 1
	}
	return n
}
