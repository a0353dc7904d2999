//go:build cgo && sqlite3

package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/cheapgo/cheap/examples/sqlite/internal/sqlite"
	"github.com/cheapgo/cheap/own"
)

// run is the command. It returns 2 for wrong arguments, and 1 for later errors.
func run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	var help strings.Builder
	flags := flag.NewFlagSet("sqlite", flag.ContinueOnError)
	flags.SetOutput(&help)
	flags.Usage = func() {
		fmt.Fprintln(&help, "usage: sqlite [flags] query [file.csv...]")
		flags.PrintDefaults()
	}
	file := flags.String("db", ":memory:", "keep the tables in this `file`")
	forget := flags.Bool("forget", false, "close no statement, and say what is left")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, help.String())
		return 0
	case err == nil && flags.NArg() == 0:
		err = errors.New("no query is given")
	}
	if err != nil {
		fmt.Fprintln(stderr, "sqlite:", err)
		return 2
	}
	// Without this, the error of a statement or database that is released later is lost.
	sqlite.OnReleaseError(func(err error) { fmt.Fprintln(stderr, "sqlite: later:", err) })
	p := program{*file, *forget}
	err = p.answer(ctx, flags.Arg(0), flags.Args()[1:], stdout)
	if *forget {
		for _, when := range []string{"at the end", "after collections"} {
			dbs, stmts, bytes := sqlite.Live()
			fmt.Fprintf(stderr, "%s: %d databases and %d statements live, %d bytes in use by SQLite\n", when, dbs, stmts, bytes)
			err = errors.Join(err, settle(ctx))
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "sqlite:", err)
		return 1
	}
	return 0
}

// settle waits until all statements are finalized and all databases are closed. A program
// needs that only to show that it does not leak.
func settle(ctx context.Context) error {
	for {
		runtime.GC()
		if err := own.Flush(ctx); err != nil {
			return err
		}
		if dbs, stmts, _ := sqlite.Live(); dbs+stmts == 0 {
			return nil
		}
	}
}

type program struct {
	file   string // of the database
	forget bool   // close no statement
}

// done closes a statement, or forgets it. The error of Close is that of the last Step.
func (p program) done(st *sqlite.Stmt) {
	if !p.forget {
		st.Close()
	}
}

// answer loads tables and prints the rows of a query.
func (p program) answer(ctx context.Context, query string, tables []string, w io.Writer) (err error) {
	db, err := sqlite.Open(p.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, table := range tables {
		if err := p.load(ctx, db, table); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	st, err := db.Prepare(query)
	if err != nil {
		return err
	}
	defer p.done(st)
	out := bufio.NewWriter(w)
	columns, err := st.Columns()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, strings.Join(columns, "\t"))
	for ctx.Err() == nil {
		row, err := st.Step()
		if err != nil {
			return err
		}
		if !row {
			return out.Flush()
		}
		cells, err := st.Row()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	return ctx.Err()
}

// load makes a table of a file, or nothing if it returns an error.
func (p program) load(ctx context.Context, db *sqlite.DB, file string) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	header, err := r.Read()
	if err != nil {
		return err
	}
	columns := make([]string, len(header))
	for i, name := range header {
		columns[i] = quote(name) + " NUMERIC" // which keeps text that is no number
	}
	table := quote(strings.TrimSuffix(filepath.Base(file), ".csv"))
	if err := db.Exec("BEGIN; CREATE TABLE " + table + " (" + strings.Join(columns, ",") + ")"); err != nil {
		return errors.Join(err, db.Exec("ROLLBACK"))
	}
	if err := p.insert(ctx, db, table, r, len(header)); err != nil {
		return errors.Join(err, db.Exec("ROLLBACK"))
	}
	return db.Exec("COMMIT")
}

// insert adds the rows of r to a table.
func (p program) insert(ctx context.Context, db *sqlite.DB, table string, r *csv.Reader, columns int) error {
	st, err := db.Prepare("INSERT INTO " + table + " VALUES (?" + strings.Repeat(",?", columns-1) + ")")
	if err != nil {
		return err
	}
	defer p.done(st)
	args := make([]any, columns)
	for ctx.Err() == nil {
		cells, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i, cell := range cells {
			args[i] = cell
		}
		if err := st.Bind(args...); err != nil {
			return err
		}
		if _, err := st.Step(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// quote makes a name of SQL out of any text.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
