//go:build cgo && sqlite3

package sqlite

import (
	"errors"
	"runtime"
	"runtime/cgo"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own"
)

// logged opens a database whose function refers to it, in a table with one row.
func logged(t *testing.T) (db *DB, seen *[]Update) {
	db, err := Open(":memory:")
	testcall.Must(t, err)
	seen = new([]Update)
	err = db.OnUpdate(func(u Update) {
		*seen = append(*seen, u)
		runtime.KeepAlive(db)
	})
	if err := errors.Join(err, db.Exec("CREATE TABLE t (n); INSERT INTO t VALUES (1)")); err != nil {
		t.Fatal(err)
	}
	return db, seen
}

func TestOnUpdate(t *testing.T) {
	db, seen := logged(t)
	if err := db.Exec("UPDATE t SET n = 2; DELETE FROM t WHERE n = 2"); err != nil {
		t.Fatal(err)
	}
	for i, op := range []int{Insert, Modify, Delete} {
		if len(*seen) != 3 || (*seen)[i] != (Update{op, "t", 1}) {
			t.Fatalf("the function was told of %+v", *seen)
		}
	}
	if err := errors.Join(db.OnUpdate(nil), db.Exec("INSERT INTO t VALUES (3)")); err != nil || len(*seen) != 3 {
		t.Errorf("%v, and %d updates", err, len(*seen))
	}
	testcall.Must(t, db.Close())
	if err := db.OnUpdate(func(Update) {}); !errors.Is(err, own.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestForgottenFunctions forgets databases whose functions refer to them, and one that a cgo.Handle keeps.
func TestForgottenFunctions(t *testing.T) {
	before, _, _ := Live()
	var handle cgo.Handle
	done := make(chan struct{})
	go func() { // whose stack refers to none of them later
		defer close(done)
		for range 50 {
			logged(t)
		}
		db, _ := logged(t)
		handle = cgo.NewHandle(func() { runtime.KeepAlive(db) }) //cheapvet:ignore callbackcycle that is what the test shows
	}()
	<-done
	collect := func() int64 {
		for range 3 {
			runtime.GC()
			testcall.Must(t, own.Flush(t.Context()))
		}
		dbs, _, _ := Live()
		return dbs - before
	}
	if n := collect(); n != 1 {
		t.Errorf("%d of 50 databases are left after three collections, and one that a handle keeps", n-1)
	}
	handle.Delete()
	if n := collect(); n != 0 {
		t.Errorf("%d databases are left when the handle is deleted", n)
	}
}
