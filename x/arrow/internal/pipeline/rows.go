// Package pipeline uses all parts of arrow that allocate: it reads a table from CSV,
// filters, sorts and groups it by arrow's compute functions, writes it to Parquet and IPC
// files, and reads these. Tests and benchmarks choose the rows and the allocator.
package pipeline

import (
	"io"
	"math/rand/v2"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
)

// keys are the keys of the groups.
var keys = func() (keys [16]string) {
	for i := range keys {
		keys[i] = "key-" + strconv.Itoa(i)
	}
	return keys
}()

// A Row is one order of the table.
type Row struct {
	ID       int64
	Key      string
	Quantity int64
	Price    float64
	Priced   bool   // if not, the price is null
	Comment  uint64 // a part of the comment's text
}

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "key", Type: arrow.BinaryTypes.String},
	{Name: "quantity", Type: arrow.PrimitiveTypes.Int64},
	{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "comment", Type: arrow.BinaryTypes.String},
}, nil)

// The columns of schema.
const (
	idColumn = iota
	keyColumn
	quantityColumn
	priceColumn
	commentColumn
)

// Rows yields the first n rows of the table, the same each time.
func Rows(n int) func(yield func(Row) bool) {
	return func(yield func(Row) bool) {
		r := rand.New(rand.NewPCG(1, 2))
		for i := range n {
			row := Row{
				ID:       int64(i),
				Key:      keys[r.IntN(len(keys))],
				Quantity: 1 + r.Int64N(100),
				Price:    float64(r.IntN(100_000)) / 100,
				Priced:   r.IntN(50) != 0,
				Comment:  r.Uint64() >> r.IntN(64),
			}
			if !yield(row) {
				return
			}
		}
	}
}

// A csvText is the table as CSV. It is made while it is read, so it takes no memory
// itself.
type csvText struct {
	rows func() (Row, bool)
	buf  []byte
	left []byte // of buf
}

func newCSVText(rows func() (Row, bool)) *csvText {
	t := &csvText{rows: rows}
	for i, f := range schema.Fields() {
		if i > 0 {
			t.buf = append(t.buf, ',')
		}
		t.buf = append(t.buf, f.Name...)
	}
	t.buf = append(t.buf, '\n')
	t.left = t.buf
	return t
}

func (t *csvText) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(t.left) == 0 {
			row, ok := t.rows()
			if !ok {
				break
			}
			t.left = row.appendCSV(t.buf[:0])
			t.buf = t.left
		}
		k := copy(p[n:], t.left)
		n, t.left = n+k, t.left[k:]
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r Row) appendCSV(b []byte) []byte {
	b = strconv.AppendInt(b, r.ID, 10)
	b = append(append(append(b, ','), r.Key...), ',')
	b = append(strconv.AppendInt(b, r.Quantity, 10), ',')
	if r.Priced {
		b = strconv.AppendFloat(b, r.Price, 'f', 2, 64)
	}
	b = strconv.AppendUint(append(b, ",order "...), r.Comment, 36)
	return append(b, '\n')
}
