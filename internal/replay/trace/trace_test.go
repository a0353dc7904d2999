package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// zipped returns stream as a trace file holds it.
func zipped(t testing.TB, stream string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	if _, err := zip.Write([]byte(stream)); err != nil {
		t.Fatal(err)
	}
	testcall.Must(t, zip.Close())
	return buf.Bytes()
}

// every is a trace with each kind of operation in it.
var every = &Trace{
	Slots:   3,
	Threads: 2,
	Ops: []Op{
		{Kind: Malloc, Slot: 0, Size: 300, Touch: true},
		{Kind: Calloc, Slot: 1, Size: 1, Touch: true, Thread: 1},
		{Kind: Realloc, Slot: 0, Size: 70000, Touch: true},
		{Kind: Aligned, Slot: 2, Size: 5, AlignLog: 12, Touch: true},
		{Kind: Free, Slot: 1},
		{Kind: Malloc, Slot: 1, Size: 0, Thread: 15},
		{Kind: Free, Slot: 0},
	},
}

func TestWriteRead(t *testing.T) {
	var buf bytes.Buffer
	testcall.Must(t, Write(&buf, every))
	got, err := Read(&buf)
	testcall.Must(t, err)
	if !reflect.DeepEqual(got, every) {
		t.Errorf("read back %+v, wrote %+v", got, every)
	}
}

// TestReadBytes holds the reader to the bytes of the format, which a writer
// with the same mistake would hide.
func TestReadBytes(t *testing.T) {
	got, err := Read(bytes.NewReader(zipped(t, "FHT1\x02\x03\x01"+
		"\x01\x00\xac\x02"+ // malloc(300)
		"\x15\x01\x05\x80\x20"+ // aligned_alloc(4096, 5) on thread 1
		"\xf2\x00"))) // free, on thread 15 or above
	testcall.Must(t, err)
	want := &Trace{Slots: 2, Threads: 1, Ops: []Op{
		{Kind: Malloc, Size: 300, Touch: true},
		{Kind: Aligned, Slot: 1, Size: 5, AlignLog: 12, Thread: 1, Touch: true},
		{Kind: Free, Thread: 15},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
}

func TestReadErrors(t *testing.T) {
	const head = "FHT1\x02\x02\x01" // 2 slots, 2 operations, 1 thread; 7 bytes
	for _, c := range []struct {
		name   string
		stream string
		offset int64
		want   string
	}{
		{"empty", "", 0, "cut short"},
		{"half a magic", "FH", 0, "cut short"},
		{"wrong magic", "FHT2\x02\x02\x01", 0, `the magic is "FHT2", not "FHT1"`},
		{"wrong short magic", "gz", 0, `the magic is "gz", not "FHT1"`},
		{"no slots", "FHT1", 4, "cut short"},
		{"too many slots", "FHT1\xff\xff\xff\xff\x7f\x01\x01", 4, "the number of slots is 34359738367"},
		{"endless number", "FHT1\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 5, "overflow"},
		{"no records", head, 7, "cut short"},
		{"cut in a record", head + "\x01\x00", 9, "cut short"},
		{"cut in a number", head + "\x01\x00\x80", 9, "cut short"},
		{"cut between records", head + "\x01\x00\x10", 10, "cut short"},
		{"operation 0", head + "\x00\x00", 7, "operation 0 does not exist"},
		{"operation 6", head + "\x01\x00\x10\x16\x00", 10, "operation 6 does not exist"},
		{"slot out of range", head + "\x01\x00\x10\x01\x02\x10", 11, "malloc of slot 2, which is out of range: the trace has 2 slots"},
		{"malloc of a live slot", head + "\x01\x00\x10\x01\x00\x10", 11, "malloc of slot 0, which holds a live block"},
		{"calloc of a live slot", head + "\x01\x00\x10\x03\x00\x10", 11, "calloc of slot 0, which holds a live block"},
		{"aligned_alloc of a live slot", head + "\x01\x00\x10\x05\x00\x10\x10", 11, "aligned_alloc of slot 0, which holds a live block"},
		{"free of an empty slot", head + "\x01\x00\x10\x02\x01", 11, "free of slot 1, which holds no block"},
		{"realloc of an empty slot", head + "\x04\x01\x10", 8, "realloc of slot 1, which holds no block"},
		{"size too large", head + "\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 9, "the size is 18446744073709551615"},
		{"alignment 0", head + "\x05\x00\x10\x00", 10, "the alignment is 0, which is no power of two"},
		{"alignment 24", head + "\x05\x00\x10\x18", 10, "the alignment is 24, which is no power of two"},
		{"trailing records", head + "\x01\x00\x10\x02\x00\x01\x00\x10", 12, "more follows after the 2 operations"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(zipped(t, c.stream)))
			check(t, err, c.offset, c.want)
			if want := strings.Contains(c.want, "cut short"); errors.Is(err, ErrTruncated) != want {
				t.Errorf("errors.Is(%v, ErrTruncated) is %v", err, !want)
			}
		})
	}
}

func TestReadBadGzip(t *testing.T) {
	const stream = "FHT1\x01\x02\x01\x01\x00\x10\x02\x00"
	whole := zipped(t, stream)
	t.Run("no gzip", func(t *testing.T) {
		_, err := Read(strings.NewReader(stream))
		check(t, err, 0, "gzip: invalid header")
	})
	t.Run("empty file", func(t *testing.T) {
		_, err := Read(strings.NewReader(""))
		check(t, err, 0, "the trace is cut short")
	})
	t.Run("checksum", func(t *testing.T) {
		bad := bytes.Clone(whole)
		bad[len(bad)-8] ^= 1
		_, err := Read(bytes.NewReader(bad))
		check(t, err, int64(len(stream)), "invalid checksum")
	})
	t.Run("cut in the trailer", func(t *testing.T) {
		_, err := Read(bytes.NewReader(whole[:len(whole)-3]))
		check(t, err, int64(len(stream)), "cut short")
	})
}

// check holds err to a *FormatError at offset whose text contains want.
func check(t *testing.T, err error, offset int64, want string) {
	t.Helper()
	var format *FormatError
	if !errors.As(err, &format) {
		t.Fatalf("error is %v, want a *FormatError", err)
	}
	if format.Offset != offset || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %q, want offset %d and %q", err, offset, want)
	}
}

// TestRecorded reads the recordings that the command embeds. The counts are from the
// recorder.
func TestRecorded(t *testing.T) {
	for name, want := range map[string]struct{ ops, slots, peak int }{
		"sqlite": {183052, 4007, 6435289},
		"gcc":    {155047, 4090, 2941468},
	} {
		f, err := os.Open(filepath.Join("..", "recorded", name+".fht.gz"))
		testcall.Must(t, err)
		defer f.Close()
		tr, err := Read(f)
		testcall.Must(t, err)
		if len(tr.Ops) != want.ops || tr.Slots != want.slots {
			t.Errorf("%s: %d operations on %d slots, want %d on %d", name, len(tr.Ops), tr.Slots, want.ops, want.slots)
		}
		if peak := peakLive(tr); peak != want.peak {
			t.Errorf("%s: %d bytes live at most, want %d", name, peak, want.peak)
		}
	}
}

// peakLive returns the most bytes that are live at once.
func peakLive(tr *Trace) int {
	sizes := make([]int, tr.Slots)
	live, peak := 0, 0
	for _, op := range tr.Ops {
		live += op.Size - sizes[op.Slot]
		sizes[op.Slot] = op.Size
		peak = max(peak, live)
	}
	return peak
}

func FuzzRead(f *testing.F) {
	var buf bytes.Buffer
	if err := Write(&buf, every); err != nil {
		f.Fatal(err)
	}
	zip, err := gzip.NewReader(&buf)
	if err != nil {
		f.Fatal(err)
	}
	var stream bytes.Buffer
	if _, err := stream.ReadFrom(zip); err != nil {
		f.Fatal(err)
	}
	f.Add(stream.Bytes())
	f.Add([]byte("FHT1\x02\x02\x01\x01\x00\x10\x02\x00"))
	f.Add([]byte("FHT1\x02\x02\x01\x04\x00\x10"))

	f.Fuzz(func(t *testing.T, stream []byte) {
		tr, err := Read(bytes.NewReader(zipped(t, string(stream))))
		if err != nil {
			var format *FormatError
			if !errors.As(err, &format) || format.Offset < 0 || format.Offset > int64(len(stream)) {
				t.Fatalf("error is %v for a stream of %d bytes, want a *FormatError within it", err, len(stream))
			}
			return
		}
		live := make([]bool, tr.Slots)
		for i, op := range tr.Ops {
			if want := op.Kind == Free || op.Kind == Realloc; live[op.Slot] != want {
				t.Fatalf("operation %d: %v of slot %d, whose live is %v", i, op.Kind, op.Slot, !want)
			}
			live[op.Slot] = op.Kind != Free
		}
		var buf bytes.Buffer
		testcall.Must(t, Write(&buf, tr))
		again, err := Read(&buf)
		testcall.Must(t, err)
		if !reflect.DeepEqual(again, tr) {
			t.Fatalf("read back %+v, wrote %+v", again, tr)
		}
	})
}
