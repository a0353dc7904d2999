package main

/*
// The functions are in the package of the binding, which the linker joins with this one.
#cgo linux LDFLAGS: -Wl,--unresolved-symbols=ignore-all
#include <stdint.h>

// From sqlite3.h, which the binding has in its folder.
enum { row = 100, done = 101, is_integer = 1, is_float = 2, is_null = 5 };
int sqlite3_step(void *);
int sqlite3_column_type(void *, int);
int64_t sqlite3_column_int64(void *, int);
double sqlite3_column_double(void *, int);
const unsigned char *sqlite3_column_text(void *, int);
int sqlite3_column_bytes(void *, int);

typedef struct { int64_t integer; double real; uintptr_t text; int type, bytes; } Column;

static int sum_round(uintptr_t statement, Column *columns, int n) {
	void *s = (void *)statement;
	int result = sqlite3_step(s);
	if (result != row) return result;
	for (int i = 0; i < n; i++) {
		Column *c = columns + i;
		c->type = sqlite3_column_type(s, i);
		switch (c->type) {
		case is_integer: c->integer = sqlite3_column_int64(s, i); break;
		case is_float: c->real = sqlite3_column_double(s, i); break;
		case is_null: break;
		default:
			c->text = (uintptr_t)sqlite3_column_text(s, i);
			c->bytes = sqlite3_column_bytes(s, i);
		}
	}
	return row;
}

static const char *text_of(uintptr_t p) { return (const char *)p; }
*/
import "C"

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"reflect"

	"github.com/mattn/go-sqlite3"
)

// roundsDriver is go-sqlite3 with rows of which each is one call of C.
const roundsDriver = "sqlite3_rounds"

func init() { sql.Register(roundsDriver, &rounds{}) }

type rounds struct{ sqlite3.SQLiteDriver }

func (d *rounds) Open(name string) (driver.Conn, error) {
	c, err := d.SQLiteDriver.Open(name)
	if err != nil {
		return nil, err
	}
	return &conn{c.(*sqlite3.SQLiteConn)}, nil
}

type conn struct{ *sqlite3.SQLiteConn }

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r, err := c.SQLiteConn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	// The statement of C is a field of the statement, which is one of the rows.
	statement := reflect.ValueOf(r).Elem().FieldByName("s").Elem().FieldByName("s").Pointer()
	return &roundRows{r.(*sqlite3.SQLiteRows), C.uintptr_t(statement), make([]C.Column, len(r.Columns()))}, nil
}

type roundRows struct {
	*sqlite3.SQLiteRows
	statement C.uintptr_t
	columns   []C.Column
}

// Next has one function of C for the calls of a round.
func (r *roundRows) Next(values []driver.Value) error {
	switch result := C.sum_round(r.statement, &r.columns[0], C.int(len(values))); result {
	case C.row:
	case C.done:
		return io.EOF
	default:
		return fmt.Errorf("sqlite3_step: %d", result)
	}
	for i := range values {
		switch c := &r.columns[i]; c._type {
		case C.is_integer:
			values[i] = int64(c.integer)
		case C.is_float:
			values[i] = float64(c.real)
		case C.is_null:
			values[i] = nil
		default:
			values[i] = C.GoStringN(C.text_of(c.text), c.bytes)
		}
	}
	return nil
}
