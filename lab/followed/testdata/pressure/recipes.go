//go:build linux && amd64

// Package pressure has functions for pace.OnPressure, of caches in C and in Go.
package pressure

// long long sqlite3_memory_used(void);
import "C"

import (
	"database/sql"
	"fmt"

	"github.com/dgraph-io/ristretto/v2"
	duckdb "github.com/duckdb/duckdb-go-bindings/linux-amd64"
	_ "github.com/mattn/go-sqlite3" // has sqlite3_memory_used
)

// sqlite returns the functions for a database with one connection (SetMaxOpenConns), and a cache of most bytes.
func sqlite(db *sql.DB, most int64) (held func() int64, free func(want int64) int64) {
	held = func() int64 { return int64(C.sqlite3_memory_used()) }
	cacheSize := func(bytes int64) { db.Exec(fmt.Sprintf("PRAGMA cache_size = -%d", max(1, bytes>>10))) }
	return held, func(want int64) int64 {
		before := held()
		cacheSize(before - want) // frees pages
		cacheSize(most)
		return before - held()
	}
}

// duckDB returns the functions for a database of DuckDB with a memory_limit of most bytes. c is a connection for
// them alone.
func duckDB(c duckdb.Connection, most int64) (held func() int64, free func(want int64) int64) {
	query := func(text string) (n int64) {
		var result duckdb.Result
		if duckdb.Query(c, text, &result) == duckdb.StateSuccess {
			n = duckdb.ValueInt64(&result, 0, 0)
		}
		duckdb.DestroyResult(&result)
		return n
	}
	limit := func(bytes int64) { query(fmt.Sprintf("SET memory_limit = '%dKiB'", max(16<<10, bytes>>10))) }
	query("SET allocator_bulk_deallocation_flush_threshold = '4MiB'") // what it frees goes to the system
	held = func() int64 { return query("SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()") }
	return held, func(want int64) int64 {
		before := held()
		limit(before - want) // frees buffers, but not of queries that run
		limit(most)
		return before - held()
	}
}

// goCache returns the functions for a cache of ristretto whose costs are bytes.
func goCache[V any](c *ristretto.Cache[string, V], most int64) (held func() int64, free func(want int64) int64) {
	held = func() int64 { return int64(c.Metrics.CostAdded() - c.Metrics.CostEvicted()) }
	return held, func(want int64) int64 {
		before := held()
		c.UpdateMaxCost(before - want)
		var none V
		c.Set("", none, 1) // evicts what is too much
		c.Wait()
		c.UpdateMaxCost(most)
		return before - held()
	}
}
