package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/csv"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/apache/arrow-go/v18/parquet"
	parquetcompress "github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

const (
	// MinPrice is the least price of an order that passes the filter.
	MinPrice = 300

	recordRows   = 64 << 10
	rowGroupRows = 128 << 10
)

// A Group has the sums of the rows of one key, after the filter.
type Group struct {
	Rows     int64
	Quantity int64 // sum of the quantities
}

// Run takes the first n rows through the pipeline, with memory from mem, all of which
// it frees. It makes files in dir, and checks that it reads from them the rows that it
// wrote.
func Run(ctx context.Context, mem memory.Allocator, n int, dir string) (map[string]Group, error) {
	ctx = compute.WithAllocator(ctx, mem)
	table, err := read(ctx, mem, n)
	if err != nil {
		return nil, err
	}
	defer func() { table.Release() }()
	sorted, err := sort(ctx, mem, table)
	if err != nil {
		return nil, fmt.Errorf("sort: %w", err)
	}
	table.Release()
	table = sorted
	groups, err := group(ctx, mem, table)
	if err != nil {
		return nil, err
	}
	if err := throughParquet(ctx, mem, table, filepath.Join(dir, "table.parquet")); err != nil {
		return nil, err
	}
	if err := throughIPC(mem, table, filepath.Join(dir, "table.arrow")); err != nil {
		return nil, err
	}
	return groups, nil
}

// read returns those rows of the table that pass the filter.
func read(ctx context.Context, mem memory.Allocator, n int) (arrow.Table, error) {
	next, stop := iter.Pull(iter.Seq[Row](Rows(n)))
	defer stop()
	r := csv.NewReader(newCSVText(next), schema,
		csv.WithAllocator(mem), csv.WithHeader(true), csv.WithChunk(recordRows), csv.WithNullReader(false, ""))
	defer r.Release()
	var records []arrow.RecordBatch
	defer func() {
		for _, r := range records {
			r.Release()
		}
	}()
	for r.Next() {
		passed, err := filter(ctx, r.RecordBatch())
		if err != nil {
			return nil, fmt.Errorf("filter: %w", err)
		}
		records = append(records, passed)
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("CSV: %w", err)
	}
	return array.NewTableFromRecords(schema, records), nil
}

func filter(ctx context.Context, r arrow.RecordBatch) (arrow.RecordBatch, error) {
	price := compute.NewDatumWithoutOwning(r.Column(priceColumn))
	mask, err := compute.CallFunction(ctx, "greater_equal", nil, price, compute.NewDatum(scalar.NewFloat64Scalar(MinPrice)))
	if err != nil {
		return nil, err
	}
	defer mask.Release()
	m := mask.(*compute.ArrayDatum).MakeArray()
	defer m.Release()
	return compute.FilterRecordBatch(ctx, r, m, compute.DefaultFilterOptions())
}

func sort(ctx context.Context, mem memory.Allocator, table arrow.Table) (arrow.Table, error) {
	leaky := newScope(mem)
	defer leaky.close()
	indices, err := compute.SortIndicesTable(compute.WithAllocator(ctx, leaky), table, []compute.SortKey{
		{ColumnIndex: keyColumn, Order: compute.SortOrderAscending},
		{ColumnIndex: priceColumn, Order: compute.SortOrderDescending},
	})
	if err != nil {
		return nil, err
	}
	defer indices.Release()
	sorted, err := compute.Take(ctx, *compute.DefaultTakeOptions(),
		compute.NewDatumWithoutOwning(table), compute.NewDatumWithoutOwning(indices))
	if err != nil {
		return nil, err
	}
	return sorted.(*compute.TableDatum).Value, nil // the caller has the datum's reference now
}

// group adds up the quantities of each key.
func group(ctx context.Context, mem memory.Allocator, table arrow.Table) (map[string]Group, error) {
	key := compute.NewDatumWithoutOwning(table.Column(keyColumn).Data())
	quantity := compute.NewDatumWithoutOwning(table.Column(quantityColumn).Data())
	leaky := newScope(mem)
	defer leaky.close()
	unique, err := compute.Unique(compute.WithAllocator(ctx, leaky), key)
	if err != nil {
		return nil, fmt.Errorf("unique: %w", err)
	}
	defer unique.Release()
	keys := unique.(*compute.ArrayDatum).MakeArray().(*array.String)
	defer keys.Release()
	groups := make(map[string]Group)
	for i := range keys.Len() {
		g, err := total(ctx, key, quantity, keys.Value(i))
		if err != nil {
			return nil, fmt.Errorf("group %s: %w", keys.Value(i), err)
		}
		groups[string([]byte(keys.Value(i)))] = g // copied: the key is in memory of arrow
	}
	return groups, nil
}

// total adds up the values of one key.
func total(ctx context.Context, key, values compute.Datum, wanted string) (Group, error) {
	mask, err := compute.CallFunction(ctx, "equal", nil, key, compute.NewDatum(scalar.NewStringScalar(wanted)))
	if err != nil {
		return Group{}, err
	}
	defer mask.Release()
	of, err := compute.Filter(ctx, values, mask, *compute.DefaultFilterOptions())
	if err != nil {
		return Group{}, err
	}
	defer of.Release()
	sums, err := compute.CumulativeSumChecked(ctx, compute.CumulativeOptions{}, of)
	if err != nil {
		return Group{}, err
	}
	defer sums.Release()
	chunks := sums.(*compute.ChunkedDatum).Chunks()
	var g Group
	for _, c := range chunks {
		c := c.(*array.Int64)
		if c.Len() > 0 {
			g = Group{g.Rows + int64(c.Len()), c.Value(c.Len() - 1)}
		}
	}
	return g, nil
}

// throughParquet writes a table to a file, reads it and compares.
func throughParquet(ctx context.Context, mem memory.Allocator, table arrow.Table, name string) (err error) {
	defer wrap(&err, "Parquet")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	props := parquet.NewWriterProperties(parquet.WithAllocator(mem), parquet.WithCompression(parquetcompress.Codecs.Snappy),
		// A dictionary, which is Go memory, pays for columns of few values only.
		parquet.WithDictionaryDefault(false),
		parquet.WithDictionaryFor(schema.Field(keyColumn).Name, true), parquet.WithDictionaryFor(schema.Field(quantityColumn).Name, true))
	arrowProps := pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(mem), pqarrow.WithStoreSchema())
	if err := pqarrow.WriteTable(table, struct{ io.Writer }{f}, rowGroupRows, props, arrowProps); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	back, err := pqarrow.ReadTable(ctx, f, parquet.NewReaderProperties(mem), pqarrow.ArrowReadProperties{BatchSize: recordRows}, mem)
	if err != nil {
		return err
	}
	defer back.Release()
	return same(back, table)
}

// throughIPC is throughParquet with arrow's own format.
func throughIPC(mem memory.Allocator, table arrow.Table, name string) (err error) {
	defer wrap(&err, "IPC")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(table.Schema()), ipc.WithAllocator(mem), ipc.WithLZ4())
	if err != nil {
		return err
	}
	records := array.NewTableReader(table, recordRows)
	defer records.Release()
	for records.Next() {
		if err := w.Write(records.RecordBatch()); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	r, err := ipc.NewFileReader(f, ipc.WithAllocator(mem))
	if err != nil {
		return err
	}
	defer r.Close()
	var batches []arrow.RecordBatch
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	for i := range r.NumRecords() {
		b, err := r.RecordBatchAt(i)
		if err != nil {
			return err
		}
		batches = append(batches, b)
	}
	back := array.NewTableFromRecords(r.Schema(), batches)
	defer back.Release()
	return same(back, table)
}

func wrap(err *error, what string) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", what, *err)
	}
}

// same compares two tables, which may be divided into records differently.
func same(got, want arrow.Table) error {
	if got.NumRows() != want.NumRows() || got.NumCols() != want.NumCols() {
		return fmt.Errorf("%d rows of %d columns came in again, of %d and %d", got.NumRows(), got.NumCols(), want.NumRows(), want.NumCols())
	}
	for i := range int(want.NumCols()) {
		if !array.ChunkedEqual(got.Column(i).Data(), want.Column(i).Data()) {
			return fmt.Errorf("column %s came in again with other values", want.Column(i).Name())
		}
	}
	return nil
}
