package main

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	_ "github.com/mattn/go-sqlite3"

	"github.com/cheapgo/cheap"
)

// A guestbook stands for a service that has memory of every kind: entries in a database of SQLite,
// which is C; an index in the Go heap; rendered pages in a heap of cheap.
type guestbook struct {
	db    *sql.DB
	dir   string
	index map[string][]int64 // the entries of each name
	pages *cheap.Heap
	fix   bool // close rows
}

const (
	entries   = 20_000
	numPages  = 1_000
	pageBytes = 16 << 10
)

// regulars have written many entries. The other name has one.
var regulars = []string{"ann", "bob", "cy", "dee", "eve", "fay"}

const once = "zed"

func newGuestbook(fix bool) (g *guestbook, err error) {
	g = &guestbook{index: map[string][]int64{}, fix: fix}
	if g.dir, err = os.MkdirTemp("", "guestbook-*"); err != nil {
		return nil, err
	}
	if g.db, err = sql.Open("sqlite3", filepath.Join(g.dir, "entries.db")); err != nil {
		return nil, err
	}
	if err := g.fill(); err != nil {
		return nil, err
	}
	g.pages, err = cheap.NewHeap(cheap.HeapOptions{Name: "pages"})
	if err != nil {
		return nil, err
	}
	for range numPages {
		page := g.pages.Malloc(pageBytes)
		if page == nil {
			return nil, cheap.ErrNoMemory
		}
		copy(unsafe.Slice((*byte)(page), pageBytes), strings.Repeat("page ", pageBytes/5)) // it has as many bytes
	}
	return g, nil
}

// fill writes the entries.
func (g *guestbook) fill() error {
	tx, err := g.db.Begin()
	if err != nil {
		return err
	}
	if _, err := tx.Exec("CREATE TABLE entries (name TEXT, entry TEXT)"); err != nil {
		return err
	}
	insert, err := tx.Prepare("INSERT INTO entries VALUES (?, ?)")
	if err != nil {
		return err
	}
	for i := range entries {
		name := regulars[rand.IntN(len(regulars))]
		if i == entries-1 {
			name = once
		}
		r, err := insert.Exec(name, fmt.Sprintf("%s was here, and wrote %d: %s", name, i, strings.Repeat("hello ", rand.IntN(50))))
		if err != nil {
			return err
		}
		id, err := r.LastInsertId()
		if err != nil {
			return err
		}
		g.index[name] = append(g.index[name], id)
	}
	return tx.Commit()
}

func (g *guestbook) close() {
	_ = g.db.Close() // what was forgotten is closed with the process
	_ = g.pages.DestroyAll()
	_ = os.RemoveAll(g.dir)
}

// visit is one request.
func (g *guestbook) visit(n int) error {
	name := once
	if n%2 == 0 {
		name = regulars[n%len(regulars)]
	}
	_, err := g.find(name, 3)
	return err
}

// find returns up to most entries of a name.
func (g *guestbook) find(name string, most int) (found []string, err error) {
	rows, err := g.db.Query("SELECT entry FROM entries WHERE name = ?", name)
	if err != nil {
		return nil, err
	}
	if g.fix {
		defer rows.Close()
	}
	for rows.Next() {
		var entry string
		if err := rows.Scan(&entry); err != nil {
			return nil, err
		}
		if found = append(found, entry); len(found) == most {
			return found, nil // and rows is forgotten
		}
	}
	return found, rows.Err()
}
