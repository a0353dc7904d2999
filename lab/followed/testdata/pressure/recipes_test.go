//go:build linux && amd64

package pressure

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/dgraph-io/ristretto/v2"
	duckdb "github.com/duckdb/duckdb-go-bindings/linux-amd64"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

const mib = 1 << 20

// gives wants half of what a cache has, and lets it grow again.
func gives(t *testing.T, most int64, held func() int64, limit func(bytes int64)) {
	t.Helper()
	var last int64
	free, grow := bounded(most, held, func(bytes int64) { last = bytes; limit(bytes) })
	defer func() {
		for range 100 {
			grow()
		}
		if last != most {
			t.Errorf("the limit grows to %d bytes, want %d", last, most)
		}
	}()
	was := held()
	freed, is := free(was/2), held()
	t.Logf("%d of %d KiB are free, as it says %d", (was-is)>>10, was>>10, freed>>10)
	if was < 8*mib || is > was*3/4 || is < was/4 || freed < was/4 {
		t.Errorf("of %d bytes the cache was to free half, has freed %d, and holds %d", was, freed, is)
	}
}

func TestSQLite(t *testing.T) {
	db, err := sql.Open("sqlite3", t.TempDir()+"/a.db")
	testcall.Must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	const most = 64 * mib
	for _, text := range []string{
		fmt.Sprintf("PRAGMA cache_size = -%d", most>>10), "CREATE TABLE t (v BLOB)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 10000) INSERT INTO t SELECT randomblob(1500) FROM n",
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	held, limit := sqlite(db)
	gives(t, most, held, limit)
}

func TestDuckDB(t *testing.T) {
	var db duckdb.Database
	var work, own duckdb.Connection
	if duckdb.Open(t.TempDir()+"/a.db", &db) != duckdb.StateSuccess || duckdb.Connect(db, &work) != duckdb.StateSuccess || duckdb.Connect(db, &own) != duckdb.StateSuccess {
		t.Fatal("the database does not open")
	}
	defer duckdb.Close(&db)
	defer duckdb.Disconnect(&work)
	defer duckdb.Disconnect(&own)
	for _, text := range []string{"CREATE TABLE t AS SELECT hash(i) AS h, random() AS v FROM range(3_000_000) r(i)", "CHECKPOINT", "SELECT sum(v), min(h) FROM t"} {
		var result duckdb.Result
		if duckdb.Query(work, text, &result) != duckdb.StateSuccess {
			t.Fatal(duckdb.ResultError(&result))
		}
		duckdb.DestroyResult(&result)
	}
	held, limit := duckDB(own)
	gives(t, 256*mib, held, limit)
}

func TestRistretto(t *testing.T) {
	const most, value = 32 * mib, 4000
	c, err := ristretto.NewCache(&ristretto.Config[string, []byte]{NumCounters: 1e5, MaxCost: most, BufferItems: 64, Metrics: true})
	testcall.Must(t, err)
	defer c.Close()
	for i := range most / value {
		c.Set(fmt.Sprint("key", i), make([]byte, value), value)
		if i%1000 == 0 {
			c.Wait() // it drops what comes too fast
		}
	}
	c.Wait()
	held, limit := goCache(c)
	gives(t, most, held, limit)
}
