// Command verdict uses libraries wrongly, or rightly: lab/verdict has what is true of each.
package main

import (
	"database/sql"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/DataDog/zstd"
	duckdb "github.com/duckdb/duckdb-go-bindings/linux-amd64"
	_ "github.com/mattn/go-sqlite3"
	sitter "github.com/tree-sitter/go-tree-sitter"
	golang "github.com/tree-sitter/tree-sitter-go/bindings/go"
)

func main() {
	map[string]func(){
		"duckdb":         func() { queries(true) },
		"duckdb-results": func() { queries(false) },
		"sqlite-rows":    rows,
		"zstd":           frames,
		"zstd-writers":   writers,
		"trees":          trees,
	}[os.Args[1]]()
}

const rounds = 250

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func pause() { time.Sleep(20 * time.Millisecond) }

// queries asks for a number of rows, and destroys the results, or forgets them.
func queries(destroy bool) {
	var db duckdb.Database
	var c duckdb.Connection
	if duckdb.Open("", &db) != duckdb.StateSuccess || duckdb.Connect(db, &c) != duckdb.StateSuccess {
		log.Fatal("the database does not open")
	}
	for range rounds {
		results(c, destroy)
		pause()
	}
	duckdb.Disconnect(&c)
	duckdb.Close(&db)
}

func results(c duckdb.Connection, destroy bool) {
	var result duckdb.Result
	if duckdb.Query(c, "SELECT i, hash(i) AS h FROM range(20_000) r(i)", &result) != duckdb.StateSuccess {
		log.Fatal(duckdb.ResultError(&result))
	}
	if destroy {
		duckdb.DestroyResult(&result)
	}
}

var forgotten []any // what Go keeps reachable, so that no finalizer closes it

func rows() {
	name := fmt.Sprintf("%s/rows%d.db", os.TempDir(), os.Getpid())
	defer os.Remove(name)
	db := must(sql.Open("sqlite3", name))
	must(db.Exec(`create table t(id integer primary key, name text);
		insert into t with recursive ids(i) as (select 1 union all select i + 1 from ids where i < 50000) select i, 'a name that takes room ' || i from ids`))
	for range rounds {
		r := must(db.Query("select name from t order by name limit 3000"))
		if !r.Next() {
			log.Fatal("no row")
		}
		forgotten = append(forgotten, r)
		pause()
	}
}

func frames() {
	text := make([]byte, 300_000)
	for i := range text {
		text[i] = byte(i * i >> 8)
	}
	ctx := zstd.NewCtx()
	var frame, back []byte
	for range rounds {
		frame = must(ctx.Compress(frame, text))
		back = must(ctx.Decompress(back, frame))
		pause()
	}
}

func writers() {
	text := make([]byte, 300_000) // more than a writer buffers
	for range rounds {
		w := zstd.NewWriterLevel(io.Discard, 3)
		must(w.Write(text))
		forgotten = append(forgotten, w)
		pause()
	}
}

func trees() {
	parser := sitter.NewParser()
	defer parser.Close()
	must(0, parser.SetLanguage(sitter.NewLanguage(golang.Language())))
	text := []byte("package p\n")
	for i := range 700 {
		text = fmt.Appendf(text, "func f%d(a, b int) int { return a*b + %d }\n", i, i)
	}
	for range rounds {
		forgotten = append(forgotten, parser.Parse(text, nil))
		pause()
	}
}
