package procfs

import (
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

const smaps = `00400000-00500000 r-xp 00001000 08:01 1234       /bin/a program (deleted)
Size:                  9 kB
Rss:                 100 kB
Pss_Anon:              7 kB
Anonymous:             1 kB
AnonHugePages:         3 kB
Swap:                  2 kB
SwapPss:               9 kB
VmFlags: rd
7f0000000000-7f0000010000 rw-p 00000000 00:00 0                          [anon: Go: heap]
Rss:                   4 kB
Anonymous:             4 kB
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0
`

// TestMappings reads a list whole, in pieces, to the second mapping, and with an error.
func TestMappings(t *testing.T) {
	t.Parallel()
	want := []Mapping{
		{
			Start: 0x400000, End: 0x500000, Read: true, Exec: true, Offset: 0x1000, Inode: 1234,
			Name: "/bin/a program (deleted)", Resident: 100 << 10, Anonymous: 1 << 10, Huge: 3 << 10, Swap: 2 << 10,
		},
		{Start: 0x7f0000000000, End: 0x7f0000010000, Read: true, Write: true, Name: "[anon: Go: heap]", Resident: 4 << 10, Anonymous: 4 << 10},
		{Start: 0xffffffffff600000, End: 0xffffffffff601000, Exec: true},
	}
	read := func(from io.Reader, most int) (got []Mapping) {
		if err := Mappings(from, func(m Mapping) bool { got = append(got, m); return len(got) < most }); err != nil {
			t.Error(err)
		}
		return got
	}
	for _, from := range []io.Reader{
		strings.NewReader(smaps), iotest.OneByteReader(strings.NewReader(smaps)), strings.NewReader(strings.TrimSuffix(smaps, "\n")),
	} {
		if got := read(from, 9); !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if got := read(strings.NewReader(smaps), 2); !slices.Equal(got, want[:2]) {
		t.Errorf("got %+v, want %+v", got, want[:2])
	}
	broken := errors.New("broken")
	if err := Mappings(iotest.ErrReader(broken), func(Mapping) bool { return true }); err != broken {
		t.Errorf("%v, want %v", err, broken)
	}
}

// TestNoMappings has lines that are no mappings.
func TestNoMappings(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "Rss: 1 kB", "a-b", "0-1 r", "0-1 rw-p 0 0 x", "0-x rw-p 0 00:00 0", "x-1 rw-p 0 00:00 0", "0-1 rw-p x 00:00 0", "0-1 r 00000 00:00 0",
	} {
		if m, ok := parse([]byte(line)); ok {
			t.Errorf("%q is taken for %+v", line, m)
		}
	}
}

// TestOwnMappings finds a variable of this process.
func TestOwnMappings(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return
	}
	x := new([64]int)
	addr := uint64(uintptr(unsafe.Pointer(x)))
	for _, name := range []string{"/proc/self/maps", "/proc/self/smaps"} {
		f, err := os.Open(name)
		testcall.Must(t, err)
		defer f.Close()
		var found Mapping
		if err := Mappings(f, func(m Mapping) bool {
			if m.Start <= addr && addr < m.End {
				found = m
			}
			return found.End == 0
		}); err != nil {
			t.Error(err)
		}
		if !found.Read || !found.Write || found.Exec {
			t.Errorf("%s: %+v", name, found)
		}
	}
	runtime.KeepAlive(x)
}

func TestBytes(t *testing.T) {
	text := []byte("55ee-7fff ---p [rollup]\nRss:    1712 kB\nPss_Anon:  7 kB\nAnonymous:    112 kB\nThreads: 3\nKSM:   0 kB")
	for name, want := range map[string]int64{"Rss": 1712 << 10, "Anonymous": 112 << 10, "KSM": 0, "Anon": -1, "Threads": -1, "": -1} {
		if n, ok := Bytes(text, name); ok != (want >= 0) || ok && n != want {
			t.Errorf("%s: %d, %v; want %d", name, n, ok, want)
		}
	}
	statm := []byte("765 420 20 1 0 9 0\n")
	if n := testing.AllocsPerRun(10, func() { Bytes(text, "KSM"); Resident(statm, 1<<12) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestResident(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int64{"765 420 20 1 0 9 0\n": {420 << 12, 20 << 12}, "765 420\n": {}, "765 x 20\n": {}, "765 420 x\n": {}, "": {}} {
		if all, file := Resident([]byte(text), 1<<12); [2]int64{all, file} != want {
			t.Errorf("%q: %d, %d; want %d", text, all, file, want)
		}
	}
}
