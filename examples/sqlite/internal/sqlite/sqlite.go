//go:build cgo && sqlite3

// Package sqlite binds databases and statements of SQLite. A forgotten statement is
// finalized after a collection, and always before its database is closed. Close does
// that at once, and returns what SQLite says.
package sqlite

/*
#cgo pkg-config: sqlite3
#include <sqlite3.h>

// Go calls each of these two with the database of one goroutine or of several. The message
// of an error is the database's: it is copied under the lock that the call had.
static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **stmt, char **message) {
	sqlite3_mutex_enter(sqlite3_db_mutex(db));
	int status = sqlite3_prepare_v2(db, sql, -1, stmt, NULL);
	if (status != SQLITE_OK) *message = sqlite3_mprintf("%s", sqlite3_errmsg(db));
	sqlite3_mutex_leave(sqlite3_db_mutex(db));
	return status;
}
static int step(sqlite3_stmt *stmt, char **message) {
	sqlite3 *db = sqlite3_db_handle(stmt);
	sqlite3_mutex_enter(sqlite3_db_mutex(db));
	int status = sqlite3_step(stmt);
	if (status != SQLITE_ROW && status != SQLITE_DONE) *message = sqlite3_mprintf("%s", sqlite3_errmsg(db));
	sqlite3_mutex_leave(sqlite3_db_mutex(db));
	return status;
}

// Macros that are casts are no functions: this one is sqlite3_bind_text that copies the text.
static int bind_text(sqlite3_stmt *stmt, int i, const char *text, sqlite3_uint64 n) {
	return sqlite3_bind_text64(stmt, i, text, n, SQLITE_TRANSIENT, SQLITE_UTF8);
}

// sqlite3_close refuses while a statement is open that the binding does not know. Nobody
// would call again, so such a database ends with that statement. The status still says it.
// Not static: Go takes its address.
int close_db(void *db) {
	int status = sqlite3_close(db);
	if (status == SQLITE_BUSY) sqlite3_close_v2(db);
	return status;
}

// statements counts all that SQLite has, also those that the binding does not know.
static int statements(sqlite3 *db) {
	int n = 0;
	sqlite3_mutex_enter(sqlite3_db_mutex(db));
	for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(db, s)) != NULL;) n++;
	sqlite3_mutex_leave(sqlite3_db_mutex(db));
	return n;
}
*/
import "C"

import (
	"context"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// An Error is a status of SQLite that is no success.
type Error struct {
	Code    int // such as Constraint
	Message string
}

// These are codes of errors.
const (
	Busy       = C.SQLITE_BUSY
	Constraint = C.SQLITE_CONSTRAINT
)

func (e *Error) Error() string { return e.Message }

// failed returns the error of a status, with what SQLite says of all errors of that kind.
func failed(status int) error {
	return &Error{status, C.GoString(C.sqlite3_errstr(C.int(status)))}
}

// failedWith returns the error of a status, and frees its message.
func failedWith(status C.int, message *C.char) error {
	defer C.sqlite3_free(unsafe.Pointer(message))
	if message == nil { // no memory for it
		return failed(int(status))
	}
	return &Error{int(status), C.GoString(message)}
}

// prepareUnowned makes a statement that the binding does not know, for tests.
func prepareUnowned(db *DB) (finalize func() error) {
	var stmt *C.sqlite3_stmt
	db.h.Use(func(p *C.sqlite3) {
		C.prepare(p, (*C.char)(unsafe.Pointer(unsafe.StringData("SELECT 1\x00"))), &stmt, nil)
	})
	return func() error { return failed(int(C.sqlite3_finalize(stmt))) }
}

// A DB is a database. Goroutines may share it.
type DB struct {
	h       own.Handle[*C.sqlite3]
	updated own.Callback[func(Update)]
}

// A Stmt is a statement of a database. One goroutine at a time may use it, but any
// goroutine may close it at any time.
type Stmt struct{ h own.Handle[*C.sqlite3_stmt] }

// SQLite calls into Go in Step alone, for OnUpdate, and not when a statement or a database is released.
var (
	databases = own.NewPool(own.Options{
		Name:           "sqlite.DB",
		CHeap:          true, // malloc's, which package cmem does not count twice then
		Release:        libc.StatusDestructor(unsafe.Pointer(C.close_db), failed),
		OnReleaseError: releaseError,
		Batch:          1, // a database that stays open holds back no other one
	})
	statements = own.NewPool(own.Options{
		Name:           "sqlite.Stmt",
		CHeap:          true,
		Release:        libc.StatusDestructor(unsafe.Pointer(C.sqlite3_finalize), failed),
		OnReleaseError: releaseError,
	})
)

var onReleaseError atomic.Pointer[func(error)]

func releaseError(err own.ReleaseError) {
	if f := onReleaseError.Load(); f != nil {
		(*f)(err)
	}
}

// OnReleaseError has f called with the errors of databases and statements that no Close
// returned, in place of an earlier f.
func OnReleaseError(f func(error)) { onReleaseError.Store(&f) }

// Open opens the database in a file, and makes the file if there is none. The database
// ":memory:" is in no file.
func Open(file string) (*DB, error) {
	a := cheap.GetArena()
	defer a.Put()
	name := cheap.CString(a, file)
	if name == nil {
		return nil, cheap.ErrNoMemory
	}
	var p *C.sqlite3
	status := C.sqlite3_open_v2((*C.char)(name), &p, C.SQLITE_OPEN_READWRITE|C.SQLITE_OPEN_CREATE|C.SQLITE_OPEN_FULLMUTEX, nil)
	if status != C.SQLITE_OK {
		C.close_db(unsafe.Pointer(p)) // an error makes one too
		return nil, fmt.Errorf("%s: %w", file, failed(int(status)))
	}
	db := new(DB)
	if err := db.h.Own(databases, p, 100<<10); err != nil {
		C.close_db(unsafe.Pointer(p)) // the pool did not take it
		return nil, err
	}
	return db, nil
}

// Close closes the database after its last statement is closed or collected. It returns
// the error of SQLite if there is no open statement.
func (db *DB) Close() error { return db.h.Close() }

// CloseWait is Close that waits for the last statement, until ctx is done.
func (db *DB) CloseWait(ctx context.Context) error { return db.h.CloseWait(ctx) }

// Live returns how many databases and statements are not released, and the bytes that SQLite
// itself says it has in use.
func Live() (dbs, stmts, bytes int64) {
	return databases.Stats().Live, statements.Stats().Live, int64(C.sqlite3_memory_used())
}

// Statements returns how many statements SQLite has for the database.
func (db *DB) Statements() (n int, err error) {
	err = db.h.TryUse(func(p *C.sqlite3) error {
		n = int(C.statements(p))
		return nil
	})
	return n, err
}

// Exec runs statements, separated by semicolons, that have no parameters. Rows are dropped.
func (db *DB) Exec(sql string) error {
	a := cheap.GetArena()
	defer a.Put()
	text := cheap.CString(a, sql)
	if text == nil {
		return cheap.ErrNoMemory
	}
	return db.h.TryUse(func(p *C.sqlite3) error {
		var message *C.char
		if status := C.sqlite3_exec(p, (*C.char)(text), nil, nil, &message); status != C.SQLITE_OK {
			return failedWith(status, message)
		}
		return nil
	})
}

// Prepare makes a statement. What follows the first semicolon is ignored.
func (db *DB) Prepare(sql string) (*Stmt, error) {
	a := cheap.GetArena()
	defer a.Put()
	text := cheap.CString(a, sql)
	if text == nil {
		return nil, cheap.ErrNoMemory
	}
	st := new(Stmt)
	err := db.h.TryUse(func(p *C.sqlite3) error {
		var stmt *C.sqlite3_stmt
		var message *C.char
		if status := C.prepare(p, (*C.char)(text), &stmt, &message); status != C.SQLITE_OK {
			return failedWith(status, message)
		}
		if stmt == nil {
			return fmt.Errorf("no statement in %q", sql)
		}
		size := C.sqlite3_stmt_status(stmt, C.SQLITE_STMTSTATUS_MEMUSED, 0)
		if err := st.h.OwnWith(statements, stmt, own.With{Size: int(size), Parent: db.h.Owner()}); err != nil {
			C.sqlite3_finalize(stmt) // the pool did not take it
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return st, nil
}

// Close finalizes the statement. If its last Step failed, SQLite returns that error again.
func (st *Stmt) Close() error { return st.h.Close() }

// Bind begins the statement anew with the given parameters, of type string, int, float64
// or nil.
func (st *Stmt) Bind(args ...any) error {
	a := cheap.GetArena()
	defer a.Put()
	return st.h.TryUse(func(p *C.sqlite3_stmt) error {
		C.sqlite3_reset(p) // the error is that of the last Step, which has returned it
		C.sqlite3_clear_bindings(p)
		for i, arg := range args {
			var status C.int
			switch arg := arg.(type) {
			case string:
				text := cheap.CString(a, arg)
				if text == nil {
					return cheap.ErrNoMemory
				}
				status = C.bind_text(p, C.int(i+1), (*C.char)(text), C.sqlite3_uint64(len(arg)))
			case int:
				status = C.sqlite3_bind_int64(p, C.int(i+1), C.sqlite3_int64(arg))
			case float64:
				status = C.sqlite3_bind_double(p, C.int(i+1), C.double(arg))
			case nil:
				status = C.sqlite3_bind_null(p, C.int(i+1))
			default:
				return fmt.Errorf("parameter %d is a %T", i+1, arg)
			}
			if status != C.SQLITE_OK {
				return fmt.Errorf("parameter %d: %w", i+1, failed(int(status)))
			}
		}
		return nil
	})
}

// Step runs the statement to its next row, and returns false if there is none.
func (st *Stmt) Step() (row bool, err error) {
	err = st.h.TryUse(func(p *C.sqlite3_stmt) error {
		var message *C.char
		status := C.step(p, &message)
		row = status == C.SQLITE_ROW
		if !row && status != C.SQLITE_DONE {
			return failedWith(status, message)
		}
		return nil
	})
	return row, err
}

// Columns returns the names of the columns of the result.
func (st *Stmt) Columns() (names []string, err error) {
	err = st.h.TryUse(func(p *C.sqlite3_stmt) error {
		for i := range C.sqlite3_column_count(p) {
			names = append(names, C.GoString(C.sqlite3_column_name(p, i)))
		}
		return nil
	})
	return names, err
}

// Row returns the row of the last Step as text. NULL is "".
func (st *Stmt) Row() (cells []string, err error) {
	err = st.h.TryUse(func(p *C.sqlite3_stmt) error {
		for i := range C.sqlite3_data_count(p) {
			text := C.sqlite3_column_text(p, i) // C's, until the next Step
			cells = append(cells, C.GoStringN((*C.char)(unsafe.Pointer(text)), C.sqlite3_column_bytes(p, i)))
		}
		return nil
	})
	return cells, err
}
