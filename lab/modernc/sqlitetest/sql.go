package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"hash"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the driver
)

// single is one connection to one database in memory.
func single(ctx context.Context, o options) (string, error) {
	return inMemory(ctx, o.scale, 1)
}

// private is several connections at a time, each to a database of its own in memory. They
// share only the allocator.
func private(ctx context.Context, o options) (string, error) {
	return each(ctx, o.conns, func(ctx context.Context, i int) (string, error) {
		return inMemory(ctx, o.scale/o.conns+1, uint64(i))
	})
}

// shared is several connections at a time to one database in a file. Each writes its own
// tables, and all read one table.
func shared(ctx context.Context, o options) (string, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(o.dir, "db")+
		"?_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)&_txlock=immediate")
	if err != nil {
		return "", err
	}
	defer db.Close()
	first, err := connect(ctx, db)
	if err != nil {
		return "", err
	}
	defer first.close()
	n := o.scale/o.conns + 1
	if err := first.fill(n, 0); err != nil {
		return "", err
	}
	sessions := make([]*session, o.conns)
	// A read while another connection changes the schema may fail (SQLITE_SCHEMA),
	// above all in fts5. So all connections write before the first one reads.
	_, err = each(ctx, o.conns, func(ctx context.Context, i int) (string, error) {
		s, err := connect(ctx, db)
		if err != nil {
			return "", err
		}
		sessions[i] = s
		return "", s.fill(n, uint64(i+1))
	})
	defer func() {
		for _, s := range sessions {
			if s != nil {
				s.close()
			}
		}
	}()
	if err != nil {
		return "", err
	}
	return each(ctx, o.conns, func(ctx context.Context, i int) (string, error) {
		s := sessions[i]
		s.ctx = ctx
		if err := s.ask(n, uint64(i+1)); err != nil {
			return "", err
		}
		if err := s.query(`SELECT c.name, count(*), sum(o.total) FROM customers_0 c JOIN orders_0 o ON o.customer = c.id
			GROUP BY c.id ORDER BY 3 DESC, 1`); err != nil {
			return "", err
		}
		return s.digest(), nil
	})
}

// each runs f for 0 to n-1 at the same time, and returns the results in order.
func each(ctx context.Context, n int, f func(ctx context.Context, i int) (string, error)) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	digests := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			var err error
			if digests[i], err = f(ctx, i); err != nil {
				cancel(fmt.Errorf("connection %d: %w", i, err)) // the first one counts
			}
		})
	}
	all.Wait()
	return strings.Join(digests, " "), context.Cause(ctx)
}

// inMemory does everything in a new database in memory.
func inMemory(ctx context.Context, n int, seed uint64) (string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	defer db.Close()
	s, err := connect(ctx, db)
	if err != nil {
		return "", err
	}
	defer s.close()
	if err := s.fill(n, seed); err != nil {
		return "", err
	}
	if err := s.ask(n, seed); err != nil {
		return "", err
	}
	if err := s.query(`VACUUM`); err != nil {
		return "", err
	}
	if err := s.query(`PRAGMA integrity_check`); err != nil {
		return "", err
	}
	return s.digest(), nil
}

// A session is a connection and the digest of the data read from it.
type session struct {
	ctx  context.Context
	conn *sql.Conn
	sum  hash.Hash
}

func connect(ctx context.Context, db *sql.DB) (*session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &session{ctx, conn, sha256.New()}, nil
}

func (s *session) close() { s.conn.Close() }

func (s *session) digest() string { return fmt.Sprintf("%x", s.sum.Sum(nil)[:8]) }

func (s *session) exec(query string, args ...any) error {
	_, err := s.conn.ExecContext(s.ctx, query, args...)
	return within(query, err)
}

// query adds all rows to the digest.
func (s *session) query(query string, args ...any) error {
	rows, err := s.conn.QueryContext(s.ctx, query, args...)
	if err != nil {
		return within(query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return within(query, err)
	}
	values, pointers := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return within(query, err)
		}
		for _, v := range values {
			fmt.Fprintf(s.sum, "%T %v|", v, v)
		}
	}
	return within(query, rows.Err())
}

func within(query string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%.60s: %w", query, err)
}

// table replaces names by those of the tables of a seed.
func table(query string, seed uint64) string {
	return strings.ReplaceAll(query, "$", fmt.Sprint(seed))
}

// schema has tables with rows of all sizes, an index made before the rows, an index made
// after them, and a full text index.
const schema = `
CREATE TABLE customers_$ (id INTEGER PRIMARY KEY, name TEXT, notes TEXT, image BLOB);
CREATE TABLE orders_$ (id INTEGER PRIMARY KEY, customer INTEGER, total REAL, items TEXT);
CREATE INDEX orders_customer_$ ON orders_$ (customer);
CREATE VIRTUAL TABLE words_$ USING fts5(body);
`

// fill makes tables and rows, in a few transactions, and changes them.
func (s *session) fill(n int, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	if err := s.exec(table(schema, seed)); err != nil {
		return err
	}
	const perTx = 1000
	for from := 0; from < n; from += perTx {
		if err := s.insert(r, from, min(from+perTx, n), seed); err != nil {
			return err
		}
	}
	for _, q := range []string{
		`CREATE INDEX orders_total_$ ON orders_$ (total, customer)`,
		`UPDATE customers_$ SET notes = notes || notes || name WHERE id % 3 = 0`,
		`DELETE FROM orders_$ WHERE id % 7 = 3`,
		`UPDATE customers_$ SET image = zeroblob(length(image) * 2) WHERE id % 5 = 1`,
	} {
		if err := s.exec(table(q, seed)); err != nil {
			return err
		}
	}
	return nil
}

// insert adds customers from..to and two orders for each, in a transaction.
func (s *session) insert(r *rand.Rand, from, to int, seed uint64) error {
	tx, err := s.conn.BeginTx(s.ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = tx.ExecContext(s.ctx, table(query, seed), args...)
			err = within(query, err)
		}
	}
	for id := from; id < to; id++ {
		image := make([]byte, r.IntN(1<<r.IntN(12)))
		for i := range image {
			image[i] = byte(r.Uint32())
		}
		text := sentence(r, 1+r.IntN(30))
		exec(`INSERT INTO customers_$ VALUES (?, ?, ?, ?)`, id, sentence(r, 2), text, image)
		exec(`INSERT INTO words_$ VALUES (?)`, text)
		for range 2 {
			exec(`INSERT INTO orders_$ (customer, total, items) VALUES (?, ?, ?)`, r.IntN(to), r.Float64()*100,
				fmt.Sprintf(`[{"item":%q,"n":%d},{"item":%q,"n":%d}]`, sentence(r, 1), r.IntN(10), sentence(r, 1), r.IntN(10)))
		}
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// ask reads the tables, by large queries and by many small ones, each of which is parsed
// and planned anew.
func (s *session) ask(n int, seed uint64) error {
	for _, q := range []string{
		`SELECT c.name, count(*), sum(o.total) FROM customers_$ c JOIN orders_$ o ON o.customer = c.id
			GROUP BY c.id HAVING count(*) > 2 ORDER BY 3 DESC, 1 LIMIT 500`,
		`SELECT id, total, rank() OVER (PARTITION BY customer % 10 ORDER BY total), sum(total) OVER (ORDER BY id) FROM orders_$`,
		`SELECT json_extract(value, '$.item') AS item, sum(json_extract(value, '$.n')) FROM orders_$, json_each(items) GROUP BY item ORDER BY 2, 1`,
		`SELECT json_group_array(name) FROM (SELECT DISTINCT name FROM customers_$ ORDER BY name)`,
		`SELECT group_concat(hex(image), '') FROM (SELECT image FROM customers_$ ORDER BY length(image) DESC, id LIMIT 50)`,
		`WITH RECURSIVE up(id, text) AS (SELECT 0, '' UNION ALL SELECT id + 1, text || id || ',' FROM up WHERE id < 500) SELECT length(text), text FROM up WHERE id % 50 = 0`,
		`SELECT rowid, snippet(words_$, 0, '[', ']', '…', 5) FROM words_$ WHERE words_$ MATCH 'alpha NEAR gamma' ORDER BY rowid`,
		`SELECT notes, count(*) FROM customers_$ WHERE notes LIKE '%delta%' GROUP BY notes ORDER BY notes`,
		`SELECT a.id, b.id FROM orders_$ a JOIN orders_$ b ON a.customer = b.customer AND a.total < b.total ORDER BY a.total, b.total LIMIT 1000`,
	} {
		q = strings.ReplaceAll(q, "'$.", "'\x00.")
		q = strings.ReplaceAll(table(q, seed), "'\x00.", "'$.")
		if err := s.query(q); err != nil {
			return err
		}
	}
	for i := range n {
		q := table(fmt.Sprintf(`SELECT name, (SELECT count(*) FROM orders_$ WHERE customer = c.id AND total > %d), upper(notes) || %d
			FROM customers_$ AS c WHERE id IN (%d, %d) ORDER BY name`, i%90, i, i, (i*37)%n), seed)
		if err := s.query(q); err != nil {
			return err
		}
	}
	return nil
}

var vocabulary = strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omikron pi rho sigma tau upsilon phi chi psi omega")

func sentence(r *rand.Rand, words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(vocabulary[r.IntN(len(vocabulary))])
	}
	return b.String()
}
