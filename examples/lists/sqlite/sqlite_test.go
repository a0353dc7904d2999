//go:build cgo && sqlite3

package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

const create = "create table t (id integer primary key, x real, name text)"

// makeRows returns n rows. One text in 50 is NULL if nulls is true, and one is empty.
func makeRows(n int, nulls bool) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = Row{ID: int64(i + 1), Real: float64(i) / 3, Text: fmt.Sprintf("person number %d%s", i, strings.Repeat("!", i%20))}
		switch {
		case nulls && i%50 == 7:
			rows[i].Text, rows[i].Null = "", true
		case i%50 == 9:
			rows[i].Text = ""
		}
	}
	return rows
}

func open(t testing.TB, name string) *DB {
	db, err := Open(name)
	testcall.Must(t, err)
	t.Cleanup(func() {
		testcall.Want(t, db.Close())
	})
	return db
}

func prepare(t testing.TB, db *DB, sql string) *Stmt {
	s, err := db.Prepare(sql)
	testcall.Must(t, err)
	t.Cleanup(s.Finalize)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	testcall.Must(t, err)
}

const (
	insert = "insert into t values (?, ?, ?)"
	query  = "select id, x, name from t order by id"
)

// TestRows inserts rows by a list into a file, and compares all ways to read them, one of them
// github.com/mattn/go-sqlite3, row by row.
func TestRows(t *testing.T) {
	ctx := t.Context()
	file := filepath.Join(t.TempDir(), "rows.db")
	db := open(t, file)
	must(t, db.Exec(create))
	want := makeRows(2500, true)
	s := prepare(t, db, insert)
	must(t, db.Exec("begin"))
	must(t, s.InsertPlain(want[:500]))
	must(t, s.InsertList(ctx, want[500:]))
	must(t, db.Exec("commit"))

	q := prepare(t, db, query)
	compare := func(name string, read func(*Columns) error, nulls bool) {
		var c Columns
		must(t, read(&c))
		if len(c.Ints) != len(want) {
			t.Fatalf("%s: %d rows, want %d", name, len(c.Ints), len(want))
		}
		for i := range want {
			got, want := c.row(i), want[i]
			want.Null = want.Null && nulls
			if got != want {
				t.Fatalf("%s: row %d is %v, want %v", name, i, got, want)
			}
		}
	}
	compare("plain", q.ReadPlain, false)
	compare("by hand", q.ReadByHand, false)
	compare("list", func(c *Columns) error { return q.ReadList(ctx, c, false) }, false)
	compare("list with NULL", func(c *Columns) error { return q.ReadList(ctx, c, true) }, true)

	if got := readOther(t, file); !slices.Equal(got, want) {
		t.Error("mattn/go-sqlite3 reads other rows")
	}
}

// readOther reads the rows by mattn/go-sqlite3.
func readOther(t testing.TB, file string) (got []Row) {
	other, err := sql.Open("sqlite3", file)
	must(t, err)
	defer other.Close()
	rows, err := other.Query(query)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var r Row
		var text sql.NullString
		must(t, rows.Scan(&r.ID, &r.Real, &text))
		r.Text, r.Null = text.String, !text.Valid
		got = append(got, r)
	}
	must(t, rows.Err())
	return got
}

// TestInsertFails inserts a row twice. Those before it are there.
func TestInsertFails(t *testing.T) {
	db := open(t, ":memory:")
	must(t, db.Exec(create))
	rows := makeRows(100, false)
	rows[70].ID = rows[3].ID
	s := prepare(t, db, insert)
	err := s.InsertList(t.Context(), rows)
	if err == nil || !strings.Contains(err.Error(), "UNIQUE") {
		t.Fatalf("the error is %v", err)
	}
	var c Columns
	must(t, prepare(t, db, query).ReadList(t.Context(), &c, false))
	if len(c.Ints) != 70 {
		t.Errorf("%d rows, want 70", len(c.Ints))
	}
	must(t, s.InsertList(t.Context(), rows[71:])) // the statement is usable
}

// TestReadCancelled reads with a context that is done.
func TestReadCancelled(t *testing.T) {
	db := open(t, ":memory:")
	must(t, db.Exec(create))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var c Columns
	if err := prepare(t, db, query).ReadList(ctx, &c, false); err != context.Canceled {
		t.Errorf("the error is %v", err)
	}
}

// A way does one round of work.
type way struct {
	name string
	run  func() error
}

// compareTimes runs the ways in turns, and reports the median ratio of the last to each other.
func compareTimes(b *testing.B, ways []way) {
	const rounds = 41
	last := len(ways) - 1
	ratios := make([][]float64, len(ways))
	for b.Loop() {
		for range rounds {
			times := make([]float64, len(ways))
			for i, w := range ways {
				start := time.Now()
				must(b, w.run())
				times[i] = float64(time.Since(start))
			}
			for i := range ways {
				ratios[i] = append(ratios[i], times[last]/times[i])
			}
		}
	}
	for i, w := range ways[:last] {
		slices.Sort(ratios[i])
		b.ReportMetric(ratios[i][len(ratios[i])/2], "x-"+w.name)
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkInsert inserts 1,000 rows in a transaction.
func BenchmarkInsert(b *testing.B) {
	db := open(b, ":memory:")
	must(b, db.Exec(create))
	s := prepare(b, db, insert)
	rows := makeRows(1000, false)
	ctx := context.Background()
	round := func(insert func() error) func() error {
		return func() error {
			must(b, db.Exec("begin"))
			must(b, insert())
			return db.Exec("rollback")
		}
	}
	compareTimes(b, []way{
		{"cgo", round(func() error { return s.InsertPlain(rows) })},
		{"list", round(func() error { return s.InsertList(ctx, rows) })},
	})
}

// BenchmarkRead reads 10,000 rows.
func BenchmarkRead(b *testing.B) {
	file := filepath.Join(b.TempDir(), "rows.db")
	db := open(b, file)
	must(b, db.Exec(create))
	s := prepare(b, db, insert)
	must(b, db.Exec("begin"))
	must(b, s.InsertList(b.Context(), makeRows(10_000, false)))
	must(b, db.Exec("commit"))
	q := prepare(b, db, query)
	ctx := context.Background()
	var c Columns
	compareTimes(b, []way{
		{"mattn", func() error { readOther(b, file); return nil }},
		{"cgo", func() error { return q.ReadPlain(&c) }},
		{"by-hand", func() error { return q.ReadByHand(&c) }},
		{"list", func() error { return q.ReadList(ctx, &c, false) }},
	})
}
