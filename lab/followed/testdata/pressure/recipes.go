//go:build linux && amd64

// Package pressure has functions for pace.OnPressure, of caches in C and in Go.
package pressure

// long long sqlite3_memory_used(void);
import "C"

import (
	"database/sql"
	"fmt"
	"sync"

	"github.com/dgraph-io/ristretto/v2"
	duckdb "github.com/duckdb/duckdb-go-bindings/linux-amd64"
	_ "github.com/mattn/go-sqlite3" // has sqlite3_memory_used
)

// bounded returns the functions for a cache of most bytes, which has a limit that can be set. free lowers the limit, and
// grow raises it by a hundredth of most.
func bounded(most int64, held func() int64, limit func(bytes int64)) (free func(want int64) int64, grow func()) {
	var mu sync.Mutex
	now := most
	free = func(want int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		before := held()
		now = max(before-want, most/100)
		limit(now)
		return before - held()
	}
	grow = func() {
		mu.Lock()
		defer mu.Unlock()
		if now < most {
			now = min(most, now+most/100)
			limit(now)
		}
	}
	return free, grow
}

// sqlite returns the functions for a database with one connection (SetMaxOpenConns).
func sqlite(db *sql.DB) (held func() int64, limit func(bytes int64)) {
	held = func() int64 { return int64(C.sqlite3_memory_used()) }
	limit = func(bytes int64) { db.Exec(fmt.Sprintf("PRAGMA cache_size = -%d", bytes>>10)) } // frees pages
	return held, limit
}

// duckDB returns the functions for a database of DuckDB. c is a connection for them alone.
func duckDB(c duckdb.Connection) (held func() int64, limit func(bytes int64)) {
	query := func(text string) (n int64) {
		var result duckdb.Result
		if duckdb.Query(c, text, &result) == duckdb.StateSuccess {
			n = duckdb.ValueInt64(&result, 0, 0)
		}
		duckdb.DestroyResult(&result)
		return n
	}
	query("SET allocator_bulk_deallocation_flush_threshold = '4MiB'") // what it frees goes to the system
	held = func() int64 { return query("SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()") }
	limit = func(bytes int64) { // frees buffers, but not of queries that run
		query(fmt.Sprintf("SET memory_limit = '%dKiB'", max(16<<10, bytes>>10)))
	}
	return held, limit
}

// goCache returns the functions for a cache of ristretto whose costs are bytes.
func goCache[V any](c *ristretto.Cache[string, V]) (held func() int64, limit func(bytes int64)) {
	held = func() int64 { return int64(c.Metrics.CostAdded() - c.Metrics.CostEvicted()) }
	limit = func(bytes int64) {
		c.UpdateMaxCost(bytes)
		var none V
		c.Set("", none, 1) // evicts what is too much
		c.Wait()
	}
	return held, limit
}
