package resident

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestReadSelf reads this process, with and without mappings.
func TestReadSelf(t *testing.T) {
	garbage := make([]byte, 40*mib)
	for i := 0; i < len(garbage); i += 1 << 10 {
		garbage[i] = 1
	}
	w := new(Watcher)
	var full Verdict
	for i, o := range []Options{{}, {Mappings: ReadMappings()}, {}} {
		r, v := w.Judge(o)
		if i == 1 {
			full = v
		} else if i == 2 && v != full {
			t.Errorf("a moment later the verdict without mappings is %v, and was %v", v, full)
		}
		if runtime.GOOS != "linux" {
			if v.About != AboutUnknown {
				t.Errorf("%+v", v)
			}
			continue
		}
		table := r.Table()
		if n := table.Of(GoInUse); n < 39*mib || n > 200*mib {
			t.Errorf("the Go heap has %d bytes in use: %+v", n, table)
		}
		if r.Kernel.Threads < 1 || r.Go.Goroutines < 1 || r.Go.Percent != 100 && os.Getenv("GOGC") == "" {
			t.Errorf("%+v, %+v", r.Kernel, r.Go)
		}
		if rest := table.Of(Rest); rest > table.Resident/10 {
			t.Errorf("the rest is %d of %d: %+v", rest, table.Resident, table)
		}
		t.Logf("%v\n%+v", v, table.Parts)
	}
	runtime.KeepAlive(garbage)
}

// TestCgroup reads the files of both versions, below a root of its own.
func TestCgroup(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		files map[string]string
		want  Cgroup
	}{
		{"nothing", nil, Cgroup{}},
		{"v2", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.current": "5000\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
			"sys/fs/cgroup/a/memory.current": "9000\n", "sys/fs/cgroup/a/memory.max": "10000\n", "sys/fs/cgroup/a/memory.high": "9500\n",
			"sys/fs/cgroup/a/memory.swap.current": "700\n", "sys/fs/cgroup/a/memory.events": "low 0\nhigh 3\nmax 9\noom 4\noom_kill 2\noom_group_kill 0\n",
			"sys/fs/cgroup/a/memory.stat":     "anon 1000\nfile 6500\nkernel 900\nkernel_stack 5\nshmem 500\n",
			"sys/fs/cgroup/a/memory.pressure": "some avg10=1.25 avg60=0.50 avg300=0.00 total=9\nfull avg10=0.30 avg60=0.00 avg300=0.00 total=0\n",
		}, Cgroup{Known: true, Charged: 9000, Limit: 9500, High: 9500, Swap: 700, Anonymous: 1000, Cache: 6000, Shared: 500, Kernel: 900, OOM: 4, OOMKills: 2, Pressure: 1.25}},
		{"v2 without a limit", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.current": "5000\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
			"sys/fs/cgroup/a/memory.current": "9000\n", "sys/fs/cgroup/a/memory.max": "max\n",
		}, Cgroup{Known: true, Charged: 5000}},
		{"v1", map[string]string{
			"proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "9000\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "10000\n",
			"sys/fs/cgroup/memory/a/memory.memsw.usage_in_bytes": "9600\n", "sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
			"sys/fs/cgroup/memory/a/memory.stat": "cache 1\ntotal_cache 5000\ntotal_rss 3000\ntotal_shmem 800\n",
		}, Cgroup{Known: true, Charged: 9000, Limit: 10000, Swap: 600, Anonymous: 3000, Cache: 4200, Shared: 800, Kernel: 1000, OOMKills: 3}},
	} {
		root := t.TempDir()
		for name, text := range row.files {
			name = filepath.Join(root, name)
			testcall.Must(t, os.MkdirAll(filepath.Dir(name), 0o777))
			testcall.Must(t, os.WriteFile(name, []byte(text), 0o666))
		}
		got := openCgroups(root).read()
		if (got.Unread == nil) != got.Known {
			t.Errorf("%s: it is said that nothing can be read: %v", row.name, got.Unread)
		}
		if got.Unread = nil; got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

// slowMalloc says that it has 7 MiB, and takes a while.
type slowMalloc struct{ reads int }

func (m *slowMalloc) Read() (used, free int64, ok bool) {
	m.reads++
	for begin := time.Now(); time.Since(begin) == 0; {
	}
	return 4 * mib, 3 * mib, true
}

func (m *slowMalloc) Trim() {}

func (m *slowMalloc) Arenas() int { return 5 }

// TestLook looks inside malloc when it may, and no more often than in one percent of the time.
func TestLook(t *testing.T) {
	if account.Process.Malloc() != nil {
		t.Fatal("the test has a malloc already")
	}
	m := new(slowMalloc)
	account.Process.SetMalloc(m)
	defer account.Process.SetMalloc(nil)
	w := new(Watcher)
	if r := w.Read(Options{}); r.Malloc.Known || m.reads != 0 {
		t.Errorf("%d looks that nobody has asked for: %+v", m.reads, r.Malloc)
	}
	r := w.Read(Options{Look: true})
	if m.reads != 1 || r.Malloc.InUse != 4*mib || r.Malloc.Free != 3*mib || r.Malloc.Longest <= 0 {
		t.Errorf("%d looks: %+v", m.reads, r.Malloc)
	}
	w.look.took = time.Hour
	if w.Read(Options{Look: true}); m.reads != 1 {
		t.Errorf("a look that takes an hour is repeated at once")
	}
	w.look.took, w.look.at = time.Second, time.Now().Add(-2*lookShare*time.Second)
	if w.Read(Options{Look: true}); m.reads != 2 {
		t.Errorf("a look of a second is not repeated after %d", 2*lookShare)
	}
	w.Note(5*mib, 2*mib, time.Minute)
	if arenas, _ := w.ReadArenas(); arenas != nil {
		t.Errorf("a malloc that knows of no arenas has %v", arenas)
	}
	account.Process.SetMalloc(arenaMalloc{m})
	if arenas, _ := w.ReadArenas(); len(arenas) != 2 || w.Read(Options{}).Malloc.Arenas != 2 {
		t.Errorf("%v, want two arenas", arenas)
	}
	if r := w.Read(Options{}); m.reads != 2 || r.Malloc.InUse != 5*mib || r.Malloc.Longest != time.Minute {
		t.Errorf("after the look of another: %+v", r.Malloc)
	}
}

// arenaMalloc has two arenas.
type arenaMalloc struct{ *slowMalloc }

func (arenaMalloc) ReadArenas() []account.Arena {
	return []account.Arena{{System: 9, Free: 5}, {System: 7}}
}

// BenchmarkJudge is what a reading without mappings, and its verdict, take.
func BenchmarkJudge(b *testing.B) {
	w := new(Watcher)
	b.ReportAllocs()
	for b.Loop() {
		w.Judge(Options{})
	}
}

// BenchmarkMappings is what the list of mappings takes.
func BenchmarkMappings(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if ReadMappings() == nil {
			return // there is none on this system
		}
	}
}

// TestAverage reads texts that are none.
func TestAverage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"": 0, "some avg10=": 0, "some avg10=x ": 0, "full avg10=3 ": 0, "some avg10=2.5": 2.5, "some avg10=NaN ": 0, "some avg10=Inf ": 0, "some avg10=-1 ": 0, strings.Repeat("\n", 9): 0} {
		if got := average([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
