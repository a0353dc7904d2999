// Proofload builds tables, takes a half of their rows, and writes these as a stream, in two goroutines.
package main

import (
	"context"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

const (
	tables = 60 // of a goroutine
	rows   = 200_000
	page   = 16 << 10
)

var (
	large   atomic.Int64 // buffers of values of a page or more
	aligned atomic.Int64 // those that begin at a page
)

func main() {
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range tables {
				check(pass(memory.DefaultAllocator))
			}
		})
	}
	wg.Wait()
	report(map[string]float64{"aligned": 100 * float64(aligned.Load()) / float64(large.Load())})
}

func pass(mem memory.Allocator) error {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "value", Type: arrow.PrimitiveTypes.Float64},
		{Name: "name", Type: arrow.BinaryTypes.String},
	}, nil)
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	half := array.NewBooleanBuilder(mem)
	defer half.Release()
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.Float64Builder).Append(float64(i) / 3)
		b.Field(2).(*array.StringBuilder).Append(strconv.Itoa(i % 1000))
		half.Append(i%2 == 0)
	}
	table := b.NewRecordBatch()
	defer table.Release()
	count(table)
	mask := half.NewArray()
	defer mask.Release()
	ctx := compute.WithAllocator(context.Background(), mem)
	taken, err := compute.FilterRecordBatch(ctx, table, mask, compute.DefaultFilterOptions())
	if err != nil {
		return err
	}
	defer taken.Release()
	count(taken)
	w := ipc.NewWriter(io.Discard, ipc.WithSchema(schema), ipc.WithAllocator(mem))
	if err := w.Write(taken); err != nil {
		return err
	}
	return w.Close()
}

// count counts the large buffers of a table.
func count(table arrow.RecordBatch) {
	for _, column := range table.Columns() {
		for _, buffer := range column.Data().Buffers() {
			if buffer == nil || buffer.Len() < page {
				continue
			}
			large.Add(1)
			if uintptr(unsafe.Pointer(unsafe.SliceData(buffer.Bytes())))%page == 0 {
				aligned.Add(1)
			}
		}
	}
}
