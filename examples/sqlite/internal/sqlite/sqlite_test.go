//go:build cgo && sqlite3

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own"
)

// open opens a database in memory with an empty table t(a PRIMARY KEY, b).
func open(t *testing.T) *DB {
	t.Helper()
	db, err := Open(":memory:")
	if err == nil {
		err = db.Exec("CREATE TABLE t (a PRIMARY KEY, b)")
	}
	testcall.Must(t, err)
	return db
}

// prepare makes a statement.
func prepare(t *testing.T, db *DB, sql string) *Stmt {
	t.Helper()
	st, err := db.Prepare(sql)
	testcall.Must(t, err)
	return st
}

// collect collects, and waits for releases, three times.
func collect(t *testing.T) {
	t.Helper()
	for range 3 {
		runtime.GC()
		testcall.Must(t, own.Flush(t.Context()))
	}
}

// settled waits until nothing of SQLite is left.
func settled(t *testing.T) {
	t.Helper()
	for {
		dbs, stmts, bytes := Live()
		if dbs+stmts+bytes == 0 {
			return
		}
		if late(t) {
			t.Fatalf("%d databases, %d statements and %d bytes are left", dbs, stmts, bytes)
		}
		collect(t)
	}
}

// late reports whether the tests end soon because they take too long.
func late(t *testing.T) bool {
	end, limited := t.Deadline()
	return limited && time.Until(end) < 5*time.Second
}

// later returns a function with the errors that no Close has returned since.
func later(t *testing.T) func() []error {
	var mu sync.Mutex
	var all []error
	OnReleaseError(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, err)
	})
	t.Cleanup(func() { OnReleaseError(func(error) {}) })
	return func() []error {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// wantCode checks that err is an error of SQLite.
func wantCode(t *testing.T, err error, code int, message string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code || e.Message != message {
		t.Errorf("error %v, want code %d, %q", err, code, message)
	}
}

func TestResults(t *testing.T) {
	testcall.Aside(func() {
		db := open(t)
		insert := prepare(t, db, "INSERT INTO t VALUES (?, ?)")
		for _, row := range [][]any{{"", 1}, {"a\x00b", 2.5}, {"é", nil}, {-7, "x"}} {
			testcall.Must(t, insert.Bind(row...))
			if more, err := insert.Step(); more || err != nil {
				t.Fatal(more, err)
			}
		}
		query := prepare(t, db, "SELECT a, b, typeof(a), typeof(b) FROM t ORDER BY rowid")
		if names, err := query.Columns(); err != nil || !slices.Equal(names, []string{"a", "b", "typeof(a)", "typeof(b)"}) {
			t.Errorf("columns %q, error %v", names, err)
		}
		var got [][]string
		for {
			more, err := query.Step()
			testcall.Must(t, err)
			if !more {
				break
			}
			row, err := query.Row()
			testcall.Must(t, err)
			got = append(got, row)
		}
		want := [][]string{
			{"", "1", "text", "integer"}, {"a\x00b", "2.5", "text", "real"},
			{"é", "", "text", "null"}, {"-7", "x", "integer", "text"},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("rows %q, want %q", got, want)
		}
	})
	settled(t)
}

func TestErrorsMakeNothing(t *testing.T) {
	testcall.Aside(func() {
		if _, err := Open(t.TempDir()); err == nil {
			t.Error("a directory was opened")
		}
		db := open(t)
		_, err := db.Prepare("SELECT c FROM t")
		wantCode(t, err, 1, "no such column: c")
		wantCode(t, db.Exec("SELECT c FROM t"), 1, "no such column: c")
		if _, err := db.Prepare("-- nothing"); err == nil {
			t.Error("a comment is a statement")
		}
		st := prepare(t, db, "SELECT ?")
		wantCode(t, st.Bind(1, 2), 25, "column index out of range")
		if err := st.Bind(struct{}{}); err == nil {
			t.Error("a struct is a parameter")
		}
		if n, err := db.Statements(); n != 1 || err != nil {
			t.Errorf("%d statements, error %v, want 1", n, err)
		}
	})
	settled(t)
}

// TestForgottenStatementsGoFirst forgets databases and their statements at once. SQLite
// refuses to close a database with a statement.
func TestForgottenStatementsGoFirst(t *testing.T) {
	errs := later(t)
	for range 5 {
		testcall.Aside(func() {
			for range 20 {
				db := open(t)
				for range 20 {
					prepare(t, db, "SELECT 1 UNION SELECT 2").Step()
				}
			}
		})
		settled(t)
	}
	if errs := errs(); len(errs) > 0 {
		t.Errorf("%d databases or statements were released with an error, the first with %v", len(errs), errs[0])
	}
}

// TestStatementKeepsItsDatabase uses a statement of a database that is forgotten.
func TestStatementKeepsItsDatabase(t *testing.T) {
	errs := later(t)
	var st *Stmt
	testcall.Aside(func() { st = prepare(t, open(t), "SELECT 1 UNION SELECT 2") })
	collect(t)
	if more, err := st.Step(); !more || err != nil {
		t.Error(more, err)
	}
	if dbs, stmts, _ := Live(); dbs != 1 || stmts != 1 || len(errs()) > 0 {
		t.Errorf("%d databases and %d statements, errors %v, want 1, 1 and none", dbs, stmts, errs())
	}
	st.Close()
	settled(t)
}

func TestCloseWithOpenStatement(t *testing.T) {
	errs := later(t)
	db := open(t)
	st := prepare(t, db, "SELECT 1 UNION SELECT 2")
	testcall.Want(t, db.Close())
	if _, err := db.Prepare("SELECT 1"); !errors.Is(err, own.ErrClosed) {
		t.Errorf("a statement of a closed database: error %v, want %v", err, own.ErrClosed)
	}
	if more, err := st.Step(); !more || err != nil {
		t.Errorf("the open statement: %v, %v", more, err)
	}
	if dbs, _, _ := Live(); dbs != 1 {
		t.Errorf("%d databases are open, want 1", dbs)
	}
	testcall.Want(t, st.Close())
	// No collection was needed.
	if dbs, stmts, bytes := Live(); dbs+stmts+bytes != 0 || len(errs()) > 0 {
		t.Errorf("%d databases, %d statements and %d bytes are left, errors %v", dbs, stmts, bytes, errs())
	}
}

func TestClosedStatement(t *testing.T) {
	db := open(t)
	st := prepare(t, db, "SELECT 1")
	testcall.Want(t, errors.Join(st.Close(), st.Close()))
	_, err1 := st.Step()
	_, err2 := st.Row()
	_, err3 := st.Columns()
	for i, err := range []error{err1, err2, err3, st.Bind(1)} {
		if !errors.Is(err, own.ErrClosed) {
			t.Errorf("call %d: error %v, want %v", i+1, err, own.ErrClosed)
		}
	}
	if n, err := db.Statements(); n != 0 || err != nil {
		t.Errorf("%d statements, error %v, want 0", n, err)
	}
	testcall.Want(t, db.Close())
	settled(t)
}

// TestErrorOfFinalize has a statement fail. Its release says so again.
func TestErrorOfFinalize(t *testing.T) {
	const message = "UNIQUE constraint failed: t.a"
	errs := later(t)
	db := open(t)
	fail := func() *Stmt {
		st := prepare(t, db, "INSERT INTO t VALUES (1, 2), (1, 3)")
		_, err := st.Step()
		wantCode(t, err, Constraint, message)
		return st
	}
	wantCode(t, fail().Close(), Constraint, "constraint failed")
	if len(errs()) > 0 {
		t.Errorf("Close has returned the error, and %v was reported", errs())
	}
	testcall.Aside(func() { fail() })
	for len(errs()) == 0 && !late(t) {
		collect(t)
	}
	var e own.ReleaseError
	if errs := errs(); len(errs) != 1 || !errors.As(errs[0], &e) || e.Pool != "sqlite.Stmt" || e.Count != 1 {
		t.Errorf("errors %v, want one of one sqlite.Stmt", errs)
	}
	wantCode(t, e.Err, Constraint, "constraint failed")
	db.Close()
	settled(t)
}

// TestErrorOfClose leaves a statement open that the binding does not know.
func TestErrorOfClose(t *testing.T) {
	errs := later(t)
	db := open(t)
	finalize := prepareUnowned(db)
	wantCode(t, db.Close(), Busy, "database is locked")
	wantCode(t, finalize(), 0, "not an error")
	settled(t)

	testcall.Aside(func() { finalize = prepareUnowned(open(t)) })
	for len(errs()) == 0 && !late(t) {
		collect(t)
	}
	if errs := errs(); len(errs) != 1 {
		t.Errorf("errors %v, want one", errs)
	} else {
		wantCode(t, errs[0], Busy, "database is locked")
	}
	wantCode(t, finalize(), 0, "not an error")
	settled(t)
}

// TestHammer has goroutines share a database, which is closed meanwhile.
func TestHammer(t *testing.T) {
	errs := later(t)
	for range 10 {
		db := open(t)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					err := work(db, fmt.Sprintf("%d/%d", g, i), i%2 == 0)
					if errors.Is(err, own.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if g == 1 && i%30 == 0 {
						runtime.GC()
					}
					if g == 0 && i == 100 {
						ctx, cancel := context.WithCancel(t.Context())
						cancel()
						if err := db.CloseWait(ctx); err != nil && err != context.Canceled {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
	}
	settled(t)
	if len(errs()) > 0 {
		t.Errorf("errors %v", errs())
	}
}

// work adds a row and looks for it. It closes its statements, or forgets them.
func work(db *DB, key string, closes bool) error {
	insert, err := db.Prepare("INSERT INTO t VALUES (?, ?)")
	if err != nil {
		return err
	}
	if err := insert.Bind(key, key); err != nil {
		return err
	}
	if _, err := insert.Step(); err != nil {
		return err
	}
	query, err := db.Prepare("SELECT b FROM t WHERE a = ?")
	if err != nil {
		return err
	}
	if err := query.Bind(key); err != nil {
		return err
	}
	if more, err := query.Step(); !more || err != nil {
		return fmt.Errorf("no row of %s: %w", key, err)
	}
	row, err := query.Row()
	if err != nil || len(row) != 1 || row[0] != key {
		return fmt.Errorf("row %q of %s: %w", row, key, err)
	}
	if closes {
		return errors.Join(insert.Close(), query.Close())
	}
	return nil
}
