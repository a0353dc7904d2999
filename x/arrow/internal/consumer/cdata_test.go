//go:build cgo

package consumer_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cheapgo/cheap"
	cheaparrow "github.com/cheapgo/cheap/x/arrow"
	"github.com/cheapgo/cheap/x/arrow/internal/consumer"
)

// newAllocator returns an allocator on a heap that must be empty when the test
// ends.
func newAllocator(t *testing.T) cheaparrow.Allocator {
	t.Helper()
	heap, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := heap.Destroy(); err != nil {
			t.Error(err)
			heap.DestroyAll()
		}
	})
	return cheaparrow.Allocator{Heap: heap}
}

var cSchema = arrow.NewSchema([]arrow.Field{
	{Name: "number", Type: arrow.PrimitiveTypes.Int64},
	{Name: "text", Type: arrow.BinaryTypes.String},
}, nil)

// cRecord returns a record of n rows, the sum of its numbers, and the sum of the
// lengths of its strings.
func cRecord(mem memory.Allocator, n int) (r arrow.RecordBatch, numbers, length int64) {
	b := array.NewRecordBuilder(mem, cSchema)
	defer b.Release()
	for i := range n {
		text := strings.Repeat("x", 1+i%7)
		b.Field(0).(*array.Int64Builder).Append(int64(i * i))
		b.Field(1).(*array.StringBuilder).Append(text)
		numbers += int64(i * i)
		length += int64(len(text))
	}
	return b.NewRecordBatch(), numbers, length
}

// TestCData has C keep a record after the call and after its release in Go, with
// collections in between. C reads it, and releases it from a thread of its own.
func TestCData(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 300_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			mem := newAllocator(t)
			r, numbers, length := cRecord(mem, n)
			exported := consumer.NewArray()
			defer consumer.FreeArray(exported)
			cdata.ExportArrowRecordBatch(r, (*cdata.CArrowArray)(exported), nil)
			r.Release()
			consumer.Keep(exported)
			var others [3][]byte // these would reuse the record's memory
			for i := range others {
				runtime.GC()
				others[i] = mem.Allocate(8 * max(n, 1))
				copy(others[i], bytes.Repeat([]byte{0xee}, len(others[i])))
			}
			if n > 0 {
				if !consumer.Aligned() {
					t.Error("a buffer is not aligned")
				}
				if gotNumbers, gotBytes := consumer.Sum(); gotNumbers != numbers || gotBytes != length {
					t.Errorf("C has %d and %d, Go had %d and %d", gotNumbers, gotBytes, numbers, length)
				}
			}
			if !consumer.Release() {
				t.Error("not released")
			}
			for _, b := range others {
				mem.Free(b)
			}
		})
	}
}

// TestCDataStream exports a stream of records to C and imports it again.
func TestCDataStream(t *testing.T) {
	mem := newAllocator(t)
	checked := memory.NewCheckedAllocator(mem)
	var records []arrow.RecordBatch
	for n := range 5 {
		r, _, _ := cRecord(checked, 100*n)
		records = append(records, r)
	}
	reader, err := array.NewRecordReader(cSchema, records)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		r.Release()
	}
	var stream cdata.CArrowArrayStream
	cdata.ExportRecordReader(reader, &stream)
	reader.Release()
	imported, err := cdata.ImportCRecordReader(&stream, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lengths []int64
	for {
		r, err := imported.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		lengths = append(lengths, r.NumRows())
		if n := r.NumRows(); n > 0 && r.Column(0).(*array.Int64).Value(int(n-1)) != (n-1)*(n-1) {
			t.Errorf("row %d is %v", n-1, r.Column(0).(*array.Int64).Value(int(n-1)))
		}
	}
	if want := []int64{0, 100, 200, 300, 400}; !slices.Equal(lengths, want) {
		t.Errorf("records of %v rows, want %v", lengths, want)
	}
	imported.(interface{ Release() }).Release()
	checked.AssertSize(t, 0)
}

// exportEnv is the environment variable that makes this process export a record: with
// our memory or, for comparison, with Go memory.
const exportEnv = "CHEAPARROW_TEST_EXPORT"

// TestCDataRules has a child process export a record. With GOEXPERIMENT=cgocheck2 Go
// checks every pointer that is stored in C memory: a record in Go memory must end the
// process, and one in our memory must not. Without, this test shows that the child works.
func TestCDataRules(t *testing.T) {
	if from := os.Getenv(exportEnv); from != "" {
		var mem memory.Allocator = cheaparrow.Allocator{}
		if from == "go" {
			mem = memory.NewGoAllocator()
		}
		r, _, _ := cRecord(mem, 1000)
		exported := consumer.NewArray()
		cdata.ExportArrowRecordBatch(r, (*cdata.CArrowArray)(exported), nil)
		cdata.ReleaseCArrowArray((*cdata.CArrowArray)(exported))
		r.Release()
		fmt.Println("exported")
		os.Exit(0)
	}
	for from, ends := range map[string]bool{"cheap": false, "go": cgocheck2} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCDataRules$")
		cmd.Env = append(os.Environ(), exportEnv+"="+from)
		out, err := cmd.CombinedOutput()
		if ends {
			if err == nil || !strings.Contains(string(out), "Go pointer stored into non-Go memory") {
				t.Errorf("%s: %v, output %q", from, err, out)
			}
		} else if err != nil || !strings.Contains(string(out), "exported") {
			t.Errorf("%s: %v, output %q", from, err, out)
		}
	}
}
