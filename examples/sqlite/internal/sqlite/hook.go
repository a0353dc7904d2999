//go:build cgo && sqlite3

package sqlite

/*
#include <sqlite3.h>

extern void sqliteUpdated(void *data, int op, char *database, char *table, sqlite3_int64 row);

static void on_update(sqlite3 *db, void *data) {
	sqlite3_update_hook(db, (void (*)(void *, int, char const *, char const *, sqlite3_int64))sqliteUpdated, data);
}
*/
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap/own"
)

// An Update is a row that was changed.
type Update struct {
	Op    int // Insert, Modify or Delete
	Table string
	Row   int64
}

// These are the changes of a row.
const (
	Insert = C.SQLITE_INSERT
	Modify = C.SQLITE_UPDATE
	Delete = C.SQLITE_DELETE
)

// updates are the functions that SQLite calls. It has a number for each, and not the function: so a function
// may refer to its database, and a program that forgets both leaks neither.
var updates = own.NewCallbacks("sqlite.DB.OnUpdate", func(Update) {})

// OnUpdate has f called for each row that a statement changes, in the goroutine of its Step, in place of an
// earlier f. It may refer to db, but must not call its methods. If f is nil nothing is called.
func (db *DB) OnUpdate(f func(Update)) error {
	return db.h.TryUse(func(p *C.sqlite3) error {
		if f == nil {
			C.sqlite3_update_hook(p, nil, nil)
			db.updated.Clear()
			return nil
		}
		C.on_update(p, db.updated.Set(updates, db.h.Owner(), f))
		return nil
	})
}

//export sqliteUpdated
func sqliteUpdated(data unsafe.Pointer, op C.int, _, table *C.char, row C.sqlite3_int64) {
	u := Update{int(op), C.GoString(table), int64(row)}
	updates.Call(data, func(f func(Update)) { f(u) })
}
