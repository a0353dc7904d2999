package blackbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// aRecord is a record in which each field is set.
func aRecord(at time.Time) *Record {
	return &Record{
		Time: at, Verdict: "C is in use and grows", Advice: "look at main.find",
		Container: &Container{Charged: 190 << 20, Limit: 200 << 20, High: 195 << 20, Swap: 1, Cache: 3 << 20, OOM: 4, OOMKills: 1, Pressure: 2.5},
		Resident:  192 << 20, Swap: 5,
		Parts:     []Figure{{Name: "C, in use", Bytes: 170 << 20, Swap: 5}, {Name: "Go heap, in use", Bytes: 10 << 20}},
		Pools:     []Figure{{Name: "Regexp", Bytes: 4 << 20, Count: 12}},
		Heaps:     []Figure{{Name: "pages", Bytes: 2 << 20, Count: 1}},
		Libraries: []Figure{{Name: "libsqlite3.so.0", Bytes: 160 << 20, Count: 40000}},
		C:         []Stack{{Name: "libsqlite3.so.0", Bytes: 150 << 20, Calls: []string{"sqlite3Malloc", "main.find guestbook.go:119"}}},
		Owners:    []Stack{{Name: "Regexp", Bytes: 4 << 20, Calls: []string{"main.compile first.go:9"}}},
		Blocks:    []Stack{{Bytes: 2 << 20, Calls: []string{"main.page first.go:20"}}},
		Notes:     []string{"no mappings"},
		Kills:     &Kills{File: "/sys/fs/cgroup/a/memory.events", Inode: 1 << 40, Count: 2},
	}
}

var aProcess = Process{Program: "server", PID: 42, Go: "go1.26", System: "linux/amd64", Started: time.Unix(1_790_000_000, 0)}

// boxOf returns the bytes of a file with so many records.
func boxOf(t *testing.T, records int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "box")
	f, _, err := create(path, aProcess)
	testcall.Must(t, err)
	for i := range records {
		testcall.Must(t, f.write(aRecord(aProcess.Started.Add(time.Duration(i+1)*time.Second))))
	}
	testcall.Must(t, f.close())
	b, err := os.ReadFile(path)
	testcall.Must(t, err)
	return b
}

// lastNumber returns the number of the last record of a file; 0 if there is none.
func lastNumber(t *testing.T, b []byte) int64 {
	t.Helper()
	r, err := decode(b)
	testcall.Must(t, err)
	if r.Last == nil {
		return 0
	}
	return r.Last.Number
}

func TestRoundTrip(t *testing.T) {
	for n := range 5 {
		b := boxOf(t, n)
		if len(b) != fileSize {
			t.Fatalf("the file has %d bytes, and should have %d", len(b), fileSize)
		}
		r, err := decode(b)
		if err != nil || r.Damaged != 0 {
			t.Fatal(err, r)
		}
		if !r.Process.Started.Equal(aProcess.Started) {
			t.Errorf("started at %v", r.Process.Started)
		}
		if r.Process.Started = aProcess.Started; r.Process != aProcess {
			t.Errorf("the process is %+v", r.Process)
		}
		if n == 0 {
			if r.Last != nil {
				t.Errorf("an empty box has %+v", r.Last)
			}
			continue
		}
		want := aRecord(aProcess.Started.Add(time.Duration(n) * time.Second))
		if want.Number = int64(n); !r.Last.Time.Equal(want.Time) {
			t.Errorf("record %d is of %v", n, r.Last.Time)
		}
		if r.Last.Time = want.Time; !reflect.DeepEqual(r.Last, want) {
			t.Errorf("%+v, want %+v", r.Last, want)
		}
	}
}

// TestTorn has a process end after each number of bytes of a write. The reader finds the new record if all
// bytes are there, and else the one before.
func TestTorn(t *testing.T) {
	for _, before := range []int{0, 1, 2, 7} {
		old, all := boxOf(t, before), boxOf(t, before+1)
		at := offset(int64(before + 1))
		end := at + prefix + int64(binary.LittleEndian.Uint32(all[at+16:]))
		for n := at; n <= end; n++ {
			torn := append(append([]byte{}, all[:n]...), old[n:]...)
			want := int64(before)
			if string(torn) == string(all) {
				want++ // also before the end: the rest of the bytes may be those of the record before
			}
			if got := lastNumber(t, torn); got != want {
				t.Fatalf("%d of %d bytes of record %d were written: record %d is read, want %d", n-at, end-at, before+1, got, want)
			}
		}
	}
}

// TestCutShort reads what is left of a file that was cut short.
func TestCutShort(t *testing.T) {
	all := boxOf(t, 4) // 4 is in the first slot, 3 in the second
	end4 := int(offset(4) + prefix + int64(binary.LittleEndian.Uint32(all[offset(4)+16:])))
	end3 := int(offset(3) + prefix + int64(binary.LittleEndian.Uint32(all[offset(3)+16:])))
	for n := 0; n <= len(all); n += 1 + n%7 {
		r, err := decode(all[:n])
		switch {
		case n < prefix:
			if !errors.Is(err, ErrNoBox) {
				t.Fatalf("%d bytes: %v", n, err)
			}
		case err != nil:
			if n >= headSize {
				t.Fatalf("%d bytes: %v", n, err)
			}
		case n < end4:
			if r.Last != nil || r.Damaged != 2 {
				t.Fatalf("%d bytes: %+v", n, r)
			}
		case r.Last == nil || r.Last.Number != 4 || n >= end3 && r.Damaged > 0 || n < int(offset(3))+8 && r.Damaged != 1:
			t.Fatalf("%d bytes: %+v", n, r)
		}
	}
}

// TestEachByte changes each byte of the head and of the newest record. No change is taken for truth.
func TestEachByte(t *testing.T) {
	all := boxOf(t, 2) // 2 is in the first slot
	headEnd := prefix + int(binary.LittleEndian.Uint32(all[16:]))
	slot := int(offset(2))
	slotEnd := slot + prefix + int(binary.LittleEndian.Uint32(all[slot+16:]))
	for i := 0; i < slotEnd; i++ {
		if i == headEnd {
			i = slot // what is between them is not used
		}
		b := append([]byte{}, all...)
		b[i] ^= 1 << (i % 8)
		r, err := decode(b)
		switch {
		case i < headEnd:
			if err == nil {
				t.Fatalf("byte %d of the head is changed: %+v", i, r)
			}
		case err != nil || r.Damaged != 1 || r.Last.Number != 1:
			t.Fatalf("byte %d of the slot is changed: %v, %+v", i-slot, err, r)
		}
	}
}

// FuzzDecode reads whatever a file may have.
func FuzzDecode(f *testing.F) {
	head, err := encodeHead(aProcess)
	testcall.Must(f, err)
	slot, err := appendSlot(nil, aRecord(aProcess.Started))
	testcall.Must(f, err)
	f.Add(append(append(head, make([]byte, headSize-len(head))...), slot...))
	f.Add(head)
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decode(b); err == nil {
			r.State = Ended
			testcall.Must(t, r.WriteText(&strings.Builder{}))
			if r.Last != nil {
				r.Last.Line()
			}
		}
	})
}

// TestOtherVersions reads a file that version 1 has written, and refuses what no version has.
func TestOtherVersions(t *testing.T) {
	r, err := ReadReport("testdata/version1.box")
	testcall.Must(t, err)
	want := aRecord(aProcess.Started.Add(3 * time.Second))
	want.Number = 3
	if r.Last.Time = want.Time; !reflect.DeepEqual(r.Last, want) || r.Process.Program != "server" {
		t.Errorf("%+v, want %+v", r.Last, want)
	}
	for _, v := range []uint32{0, 2, 1 << 31} {
		b := boxOf(t, 1)
		binary.LittleEndian.PutUint32(b[8:], v)
		if _, err := decode(b); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has version %d,", v)) {
			t.Errorf("version %d: %v", v, err)
		}
	}
	// A later writer of this version may have fields that this reader does not know.
	b := boxOf(t, 1)
	text := []byte(`{"verdict":"later","future":{"a":[1,2]}}`)
	slot := append(append([]byte{}, b[offset(1):offset(1)+prefix]...), text...)
	seal(slot)
	copy(b[offset(1):], slot)
	if r, err := decode(b); err != nil || r.Last.Verdict != "later" {
		t.Errorf("an unknown field: %v, %+v", err, r)
	}
}

// TestTooLong has records of which parts are left out until they fit. The verdict and the largest parts
// stay.
func TestTooLong(t *testing.T) {
	long := strings.Repeat("github.com/someone/something.(*Type[...]).method", 3)
	for _, n := range []int{1, 10, 100} {
		r := aRecord(aProcess.Started)
		for i := range n {
			name := fmt.Sprintf("%s%d", long, i)
			var calls []string
			for range 1 + i%40 {
				calls = append(calls, name)
			}
			r.C = append(r.C, Stack{Name: name, Calls: calls})
			r.Owners = append(r.Owners, Stack{Name: name, Calls: calls})
			r.Blocks = append(r.Blocks, Stack{Name: name, Calls: calls})
			r.Parts = append(r.Parts, Figure{Name: name})
			r.Pools = append(r.Pools, Figure{Name: name})
			r.Libraries = append(r.Libraries, Figure{Name: name})
		}
		b, err := appendSlot(nil, r)
		if err != nil || len(b) > slotSize {
			t.Fatal(len(b), err)
		}
		var got Record
		testcall.Must(t, json.Unmarshal(opened(b), &got))
		if got.Verdict == "" || len(got.Parts) == 0 || got.Parts[0].Name != "C, in use" || len(got.C) == 0 || got.C[0].Calls[0] != "sqlite3Malloc" {
			t.Errorf("with %d of each, %d bytes are left: %s", n, len(b), opened(b))
		}
		if len(b) < slotSize/4 && n > 1 {
			t.Errorf("with %d of each, only %d bytes are left", n, len(b))
		}
	}
	// Names alone may be too long.
	huge := strings.Repeat("x", slotSize)
	r := &Record{Verdict: huge, Advice: huge, Notes: []string{huge}, Parts: []Figure{{Name: huge}}, Container: &Container{Charged: 7}}
	if b, err := appendSlot(nil, r); err != nil || len(b) > slotSize || r.Container.Charged != 7 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
