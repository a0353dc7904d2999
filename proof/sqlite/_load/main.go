// Proofload reads 100,000 rows of 8 columns from a database in memory, again and again.
package main

import (
	"database/sql"
	"strconv"

	_ "github.com/mattn/go-sqlite3"
)

const (
	rows  = 100_000
	times = 10
)

func main() {
	db, err := sql.Open("sqlite3", ":memory:")
	check(err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, customer INTEGER, name TEXT, city TEXT, price REAL, weight REAL, amount INTEGER, state INTEGER)")
	check(err)
	tx, err := db.Begin()
	check(err)
	insert, err := tx.Prepare("INSERT INTO t (customer, name, city, price, weight, amount, state) VALUES (?, ?, ?, ?, ?, ?, ?)")
	check(err)
	for i := range rows {
		_, err = insert.Exec(i%1000, "name "+strconv.Itoa(i), "city "+strconv.Itoa(i%100), float64(i)/3, float64(i)/7, i, i%5)
		check(err)
	}
	check(tx.Commit())
	begin := used()
	for range times {
		read(db)
	}
	report(map[string]float64{"select": (used() - begin) / times / 1e6})
}

func read(db *sql.DB) {
	all, err := db.Query("SELECT * FROM t")
	check(err)
	n := 0
	for all.Next() {
		var id, customer, amount, state int
		var name, city string
		var price, weight float64
		check(all.Scan(&id, &customer, &name, &city, &price, &weight, &amount, &state))
		n++
	}
	check(all.Err())
	if n != rows {
		panic(n)
	}
}
