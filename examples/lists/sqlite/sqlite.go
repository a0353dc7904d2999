//go:build cgo && sqlite3

package sqlite

/*
#cgo pkg-config: sqlite3
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// SQLITE_TRANSIENT is a cast: SQLite copies the text.
static int bind_text_copy(sqlite3_stmt *stmt, int i, const char *text, int n) {
	return sqlite3_bind_text(stmt, i, text, n, SQLITE_TRANSIENT);
}

// read_rows is what a binding would have in C for this query alone: it reads up to most rows
// into arrays. The status is SQLITE_ROW if there may be more.
static int read_rows(sqlite3_stmt *stmt, int most, int64_t *ints, double *reals, uint64_t *ends, char *text, uint64_t size, int *rows) {
	uint64_t used = 0;
	int status = SQLITE_ROW;
	for (*rows = 0; *rows < most; ++*rows) {
		if ((status = sqlite3_step(stmt)) != SQLITE_ROW) break;
		ints[*rows] = sqlite3_column_int64(stmt, 0);
		reals[*rows] = sqlite3_column_double(stmt, 1);
		const unsigned char *from = sqlite3_column_text(stmt, 2);
		uint64_t n = sqlite3_column_bytes(stmt, 2);
		if (used + n > size) abort(); // the caller knows how long texts are
		memcpy(text + used, from, n);
		ends[*rows + 1] = used += n;
	}
	return status;
}
*/
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/cheapgo/cheap/calls"
)

//go:generate go run github.com/cheapgo/cheap/calls/callgen -from sqlite.go -strip sqlite3_ -o lists.go sqlite3_bind_int64 sqlite3_bind_double sqlite3_bind_text sqlite3_bind_null sqlite3_step sqlite3_reset sqlite3_column_int64 sqlite3_column_double sqlite3_column_text sqlite3_column_bytes sqlite3_column_type

// A Row is a row of the table.
type Row struct {
	ID   int64
	Real float64
	Text string
	Null bool // Text is NULL
}

// A DB is a database, for one goroutine.
type DB struct{ db *C.sqlite3 }

// A Stmt is a statement of a DB.
type Stmt struct {
	db   *C.sqlite3
	stmt *C.sqlite3_stmt
}

// Open opens the database of a file.
func Open(name string) (*DB, error) {
	d := new(DB)
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if status := C.sqlite3_open(text, &d.db); status != C.SQLITE_OK {
		err := fmt.Errorf("sqlite: open %s: status %d", name, status)
		C.sqlite3_close(d.db)
		return nil, err
	}
	return d, nil
}

// Close closes the database. Its statements must be finalized.
func (d *DB) Close() error { return check(d.db, C.sqlite3_close(d.db), C.SQLITE_OK) }

// Exec runs statements without results.
func (d *DB) Exec(sql string) error {
	text := C.CString(sql)
	defer C.free(unsafe.Pointer(text))
	return check(d.db, C.sqlite3_exec(d.db, text, nil, nil, nil), C.SQLITE_OK)
}

// Prepare makes a statement.
func (d *DB) Prepare(sql string) (*Stmt, error) {
	s := &Stmt{db: d.db}
	text := C.CString(sql)
	defer C.free(unsafe.Pointer(text))
	return s, check(d.db, C.sqlite3_prepare_v2(d.db, text, -1, &s.stmt, nil), C.SQLITE_OK)
}

// Finalize ends the statement.
func (s *Stmt) Finalize() { C.sqlite3_finalize(s.stmt) }

func check(db *C.sqlite3, status, want C.int) error {
	if status == want {
		return nil
	}
	return fmt.Errorf("sqlite: status %d: %s", status, C.GoString(C.sqlite3_errmsg(db)))
}

var empty byte

// InsertPlain inserts rows with five cgo calls for each.
func (s *Stmt) InsertPlain(rows []Row) error {
	for i := range rows {
		r := &rows[i]
		C.sqlite3_bind_int64(s.stmt, 1, C.sqlite3_int64(r.ID))
		C.sqlite3_bind_double(s.stmt, 2, C.double(r.Real))
		if r.Null {
			C.sqlite3_bind_null(s.stmt, 3)
		} else {
			text := unsafe.StringData(r.Text)
			if text == nil {
				text = &empty // a null pointer would be NULL
			}
			C.bind_text_copy(s.stmt, 3, (*C.char)(unsafe.Pointer(text)), C.int(len(r.Text)))
		}
		if err := check(s.db, C.sqlite3_step(s.stmt), C.SQLITE_DONE); err != nil {
			C.sqlite3_reset(s.stmt)
			return err
		}
		C.sqlite3_reset(s.stmt)
	}
	return nil
}

// rowsInList is how many rows InsertList records at a time: the words of so many fit in the
// first cache of the processor, with some of what SQLite needs.
const rowsInList = 32

// InsertList inserts rows with one cgo call for many. If a row fails, those before it are
// inserted.
func (s *Stmt) InsertList(ctx context.Context, rows []Row) error {
	c := Calls{List: calls.Get()}
	defer c.List.Put()
	defer C.sqlite3_bind_null(s.stmt, 3) // SQLite has the address of the last text
	for len(rows) > 0 {
		n := min(len(rows), rowsInList)
		c.List.Reset()
		for i := range rows[:n] {
			r := &rows[i]
			c.BindInt64(s.stmt, 1, r.ID)
			c.BindDouble(s.stmt, 2, r.Real)
			if r.Null {
				c.BindNull(s.stmt, 3)
			} else {
				c.BindText(s.stmt, 3, c.List.Text(r.Text), int32(len(r.Text)), nil) // it stays until Reset
			}
			c.List.StopIf(calls.NotEqual(c.Step(s.stmt), C.SQLITE_DONE))
			c.Reset(s.stmt)
		}
		if err := c.List.Run(ctx); err != nil {
			err = fmt.Errorf("%w: %s", err, C.GoString(C.sqlite3_errmsg(s.db)))
			C.sqlite3_reset(s.stmt)
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// Columns are rows by column. Row i has the bytes of Text from Ends[i] to Ends[i+1].
type Columns struct {
	Ints  []int64
	Reals []float64
	Null  []bool
	Ends  []uint64
	Text  []byte
}

// row returns row i.
func (c *Columns) row(i int) Row {
	return Row{c.Ints[i], c.Reals[i], string(c.Text[c.Ends[i]:c.Ends[i+1]]), c.Null != nil && c.Null[i]}
}

func (c *Columns) empty() {
	c.Ints, c.Reals, c.Null, c.Ends, c.Text = c.Ints[:0], c.Reals[:0], nil, append(c.Ends[:0], 0), c.Text[:0]
}

// ReadPlain reads all rows of a query of three columns, with five cgo calls for each.
func (s *Stmt) ReadPlain(into *Columns) error {
	into.empty()
	defer C.sqlite3_reset(s.stmt)
	for {
		switch status := C.sqlite3_step(s.stmt); status {
		case C.SQLITE_ROW:
		case C.SQLITE_DONE:
			return nil
		default:
			return check(s.db, status, C.SQLITE_DONE)
		}
		into.Ints = append(into.Ints, int64(C.sqlite3_column_int64(s.stmt, 0)))
		into.Reals = append(into.Reals, float64(C.sqlite3_column_double(s.stmt, 1)))
		text := C.sqlite3_column_text(s.stmt, 2)
		n := C.sqlite3_column_bytes(s.stmt, 2)
		into.Text = append(into.Text, unsafe.Slice((*byte)(unsafe.Pointer(text)), int(n))...)
		into.Ends = append(into.Ends, uint64(len(into.Text)))
	}
}

// How many rows and bytes a run reads.
const (
	rowsInRun  = 1024
	bytesInRun = 64 << 10
)

// ReadByHand is ReadPlain with a loop in C that is written for this query. Texts must have
// less than 64 bytes.
func (s *Stmt) ReadByHand(into *Columns) error {
	into.empty()
	defer C.sqlite3_reset(s.stmt)
	var a struct {
		ints  [rowsInRun]int64
		reals [rowsInRun]float64
		ends  [rowsInRun + 1]uint64
		text  [bytesInRun]byte
		rows  C.int
	}
	for {
		status := C.read_rows(s.stmt, rowsInRun, (*C.int64_t)(&a.ints[0]), (*C.double)(&a.reals[0]), (*C.uint64_t)(&a.ends[0]), (*C.char)(unsafe.Pointer(&a.text[0])), bytesInRun, &a.rows)
		n, before := int(a.rows), uint64(len(into.Text))
		into.Ints, into.Reals = append(into.Ints, a.ints[:n]...), append(into.Reals, a.reals[:n]...)
		into.Text = append(into.Text, a.text[:a.ends[n]]...)
		for _, end := range a.ends[1 : n+1] {
			into.Ends = append(into.Ends, before+end)
		}
		if status != C.SQLITE_ROW {
			return check(s.db, status, C.SQLITE_DONE)
		}
	}
}

// ReadList is ReadPlain with a list of calls. It also reads which texts are NULL if nulls is
// true, with one call more for each row.
func (s *Stmt) ReadList(ctx context.Context, into *Columns, nulls bool) error {
	into.empty()
	c := Calls{List: calls.Get()}
	defer c.List.Put()
	defer C.sqlite3_reset(s.stmt)

	loop := c.List.Repeat(rowsInRun)
	status := c.Step(s.stmt)
	loop.While(calls.Equal(status, C.SQLITE_ROW))
	ints := loop.Ints(c.ColumnInt64(s.stmt, 0))
	reals := loop.Floats(c.ColumnDouble(s.stmt, 1))
	text := c.ColumnText(s.stmt, 2)
	texts := loop.Bytes(text, c.ColumnBytes(s.stmt, 2), bytesInRun)
	var isNull calls.Flags
	if nulls {
		isNull = loop.Equal(c.ColumnType(s.stmt, 2), C.SQLITE_NULL)
	}
	loop.End()

	for more := true; more; more = loop.More() {
		if err := c.List.Run(ctx); err != nil {
			return err
		}
		into.Ints, into.Reals = append(into.Ints, ints.Values()...), append(into.Reals, reals.Values()...)
		if nulls {
			into.Null = append(into.Null, isNull.Values()...)
		}
		into.Text, into.Ends = texts.AppendTo(into.Text, into.Ends)
	}
	return check(s.db, C.int(status.Int()), C.SQLITE_DONE)
}
