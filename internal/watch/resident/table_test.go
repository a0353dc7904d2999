package resident

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// TestAddsUp divides readings of any numbers, which need not fit each other.
func TestAddsUp(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	n := func() int64 {
		if random.IntN(4) == 0 {
			return 0
		}
		return random.Int64N(1 << (10 + random.IntN(22)))
	}
	for i := range 5000 {
		r := &Reading{
			Go: Go{Objects: n(), Idle: n(), Stacks: n(), Runtime: n()}, Cheap: Cheap{n(), n(), n()},
			C: C{Known: random.IntN(2) == 0, Live: n()}, Malloc: Malloc{Known: random.IntN(2) == 0, InUse: n(), Free: n()},
		}
		r.Kernel = Kernel{Anonymous: n(), File: n(), Shared: n(), Swap: n()}
		r.Kernel.Resident = r.Kernel.Anonymous + r.Kernel.File + r.Kernel.Shared
		if random.IntN(2) == 0 {
			r.Mappings = &Mappings{}
			for is := range isReserved + 1 {
				for file := range random.IntN(8) {
					s := Sum{Name: fmt.Sprint("file", is, file), Resident: n(), Swap: n(), Count: 1, is: is}
					s.Space = s.Resident + n()
					s.large = random.Int64N(s.Resident + 1)
					r.Mappings.List = append(r.Mappings.List, s)
					r.Mappings.All.Resident += s.Resident
					r.Mappings.All.Swap += s.Swap
				}
			}
		}
		table := r.Table()
		var sum, swap int64
		for _, p := range table.Parts {
			if p.Bytes < 0 || p.Swap < 0 {
				t.Fatalf("reading %d: %+v", i, p)
			}
			sum, swap = sum+p.Bytes, swap+p.Swap
		}
		if sum != table.Resident || table.Mapped && swap != table.Swap {
			t.Fatalf("reading %d: the parts have %d bytes of %d, and %d swapped out of %d:\n%+v\n%+v", i, sum, table.Resident, swap, table.Swap, r, table)
		}
		Judge(r, nil) // does not panic
	}
}

// smaps writes a list of mappings. A row is "range mode name", the resident kB, and the swapped ones.
func smaps(rows ...[3]any) string {
	var b strings.Builder
	for _, r := range rows {
		f := strings.SplitN(r[0].(string), " ", 3)
		name := ""
		if len(f) > 2 {
			name = f[2]
		}
		fmt.Fprintf(&b, "%s %s 00000000 08:01 1234       %s\nSize: 9 kB\nRss:   %d kB\nAnonymous: %d kB\nSwap:  %d kB\nVmFlags: rd\n", f[0], f[1], name, r[1], r[1], r[2])
	}
	return b.String()
}

// TestMappedParts has a program with C, threads, wasm, a library that was replaced, and swap.
func TestMappedParts(t *testing.T) {
	t.Parallel()
	p := &Classifier{Program: "/bin/program", InGo: func(addr uint64) bool { return addr>>32 == 0xc0 }}
	m := p.Sum(strings.NewReader(smaps(
		[3]any{"400000-500000 r-xp /bin/program", 100, 0},
		[3]any{"500000-510000 rw-p", 4, 0}, // variables
		[3]any{"2000000-2100000 rw-p [heap]", 200, 0},
		[3]any{"c000000000-c004000000 rw-p", 5000, 1000},
		[3]any{"7f0000000000-7f0000010000 r--p /lib/liba.so.1 (deleted)", 8, 0},
		[3]any{"7f0000020000-7f0000021000 ---p", 0, 0},
		[3]any{"7f0000021000-7f0000821000 rw-p", 16, 0},
		[3]any{"7f0004000000-7f0004021000 rw-p", 50, 0},
		[3]any{"7f0004021000-7f0008000000 ---p", 0, 0},
		[3]any{"7f0100001000-7f0100201000 rw-p", 2048, 0},
		[3]any{"7f0100201000-7f0200201000 ---p", 0, 0}, // 4 GiB
		[3]any{"7f0300001000-7f0300401000 rw-p", 3000, 0},
		[3]any{"7f0301000000-7f0301001000 rw-p", 3, 0},
		[3]any{"7f0302000000-7f0302100000 rw-s /dev/shm/x", 70, 0},
		[3]any{"7f0303000000-7f0303100000 r--s /data/words.db", 80, 0},
		[3]any{"7ffc00000000-7ffc00010000 rw-p [stack]", 7, 0},
		[3]any{"7ffe00000000-7ffe00001000 r-xp [vdso]", 1, 0},
	)))
	if m == nil {
		t.Fatal("no mappings")
	}
	r := &Reading{Mappings: m, Go: Go{Objects: 4000 << 10, Stacks: 500 << 10, Runtime: 2 << 10}}
	want := map[string]int64{
		"the program": 104, "malloc, in use and free": 250, "Go heap, in use": 4000, "Go heap, idle": 500, "Go stacks": 500, "Go runtime": 2,
		"liba.so.1 (deleted)": 8, "stacks of threads": 23, "sandboxes (such as wasm)": 2048, "large mappings": 3000, "x": 70, "words.db": 80, "the rest": 2,
	}
	table := r.Table()
	for _, part := range table.Parts {
		if part.Bytes != want[part.Name]<<10 {
			t.Errorf("%s: %d KiB, want %d", part.Name, part.Bytes>>10, want[part.Name])
		}
		delete(want, part.Name)
	}
	if len(want) > 0 || table.Swap != 1000<<10 {
		t.Errorf("not there: %v; %d KiB are swapped out", want, table.Swap>>10)
	}
}

// TestBlocks has large blocks of malloc, of which cmem knows that they are in use.
func TestBlocks(t *testing.T) {
	t.Parallel()
	text := smaps(
		[3]any{"2000000-2a00000 rw-p [heap]", 10 << 10, 0},
		[3]any{"7f0300001000-7f0300401000 rw-p", 4 << 10, 0},
	)
	p := &Classifier{Malloc: blocksOf(3 << 20)}
	r := &Reading{Mappings: p.Sum(strings.NewReader(text)), C: C{Known: true, Live: 7 << 20}}
	table := r.Table()
	for k, want := range map[Kind]int64{CInUse: 7 << 20, MallocFree: 6 << 20, Mapped: 1 << 20} {
		if n := table.Of(k); n != want {
			t.Errorf("%v: %d, want %d: %+v", k, n, want, table)
		}
	}
	r.C = C{}
	table = r.Table()
	if table.Of(CInUse) != 3<<20 || table.Of(MallocAll) != 10<<20 {
		t.Errorf("without cmem: %+v", table)
	}
}

// TestAlignedAsArenas has mappings at addresses that arenas of malloc could have: the memory of a module of
// wasm, in a reservation of some GiB, and one of others, whose header is none of malloc's.
func TestAlignedAsArenas(t *testing.T) {
	t.Parallel()
	text := smaps(
		[3]any{"7f0004000000-7f0084000000 ---p", 0, 0}, // 2 GiB
		[3]any{"7f0084000000-7f0087e80000 rw-p", 50 << 10, 0},
		[3]any{"7f0087e80000-7f0184000000 ---p", 0, 0},
		[3]any{"7f0300000000-7f0302000000 rw-p", 9 << 10, 0},
		[3]any{"7f0400000000-7f0401000000 rw-p", 6 << 10, 0},
		[3]any{"7f0401000000-7f0404000000 ---p", 0, 0},
	)
	p := &Classifier{Malloc: func(m *procfs.Mapping, _ uint64) ofMalloc {
		if m.Start == 0x7f0400000000 {
			return ofMalloc{arenas: 16 << 20, sure: true}
		}
		return ofMalloc{sure: true}
	}}
	r := &Reading{Mappings: p.Sum(strings.NewReader(text))}
	table := r.Table()
	for k, want := range map[Kind]int64{Sandbox: 50 << 20, Mapped: 9 << 20, MallocAll: 6 << 20} {
		if n := table.Of(k); n != want {
			t.Errorf("%v: %d, want %d: %+v", k, n, want, table)
		}
	}
}

// TestNoMappings has lists that are none.
func TestNoMappings(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(smaps([3]any{"2000000-2a00000 rw-p [heap]", 10, 0}), mostText/100)
	for _, text := range []string{"", "nothing", long} {
		if m := new(Classifier).Sum(strings.NewReader(text)); m != nil {
			t.Errorf("%.20q is taken for a list of mappings: %+v", text, m.All)
		}
	}
	if m := (&Classifier{Whole: true}).Sum(strings.NewReader(long)); m == nil || m.All.Count != mostText/100 {
		t.Errorf("all of a long list: %+v", m)
	}
	if f, err := os.Open("/proc/self/smaps"); err == nil {
		defer f.Close()
		if m := new(Classifier).Sum(f); m == nil || m.All.Resident < 1<<20 {
			t.Errorf("of this process: %+v", m)
		}
	}
}

// blocksOf takes the first n bytes of each mapping for blocks.
func blocksOf(n int64) func(*procfs.Mapping, uint64) ofMalloc {
	return func(*procfs.Mapping, uint64) ofMalloc { return ofMalloc{blocks: n} }
}
