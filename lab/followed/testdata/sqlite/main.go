// Command sqlite sums up the columns of a table, by go-sqlite3 below database/sql. With -followed it does
// what `cheap explain` says of it:
//
//	main.sum main.go, for, 4 functions of C: one function of C that makes the calls of a round
//
// The loop is sum in main.go. Its calls of C are those of the driver's rows before, and of the rows in
// round.go behind. On two cores of an AMD EPYC the advice promised 0.33 of the processor time, and 0.32 of it
// was gone.
package main

import (
	"database/sql"
	"flag"
	"fmt"
	"log"

	_ "github.com/mattn/go-sqlite3"
)

func main() {
	followed := flag.Bool("followed", false, "follow the advice")
	scans := flag.Int("scans", 160, "scan the table so often")
	flag.Parse()
	driver := "sqlite3"
	if *followed {
		driver = roundsDriver
	}
	fmt.Println(run(driver, *scans))
}

// found is what the scans find.
type found struct {
	rows, numbers int64
	values        float64
}

// run makes a table, and scans it again and again.
func run(driver string, scans int) (f found) {
	db, err := sql.Open(driver, ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // a database in memory is its connection's
	for _, text := range []string{
		"create table t(id integer primary key, number integer, value real, name text)",
		"insert into t with recursive ids(i) as (select 1 union all select i + 1 from ids where i < 50000) select i, i * 7919 % 1000, i / 4.0, 'name ' || i from ids",
	} {
		if _, err := db.Exec(text); err != nil {
			log.Fatal(err)
		}
	}
	for range scans {
		sum(db, &f)
	}
	return f
}

func sum(db *sql.DB, f *found) {
	rows, err := db.Query("select id, number, value from t")
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, number int64
		var value float64
		if err := rows.Scan(&id, &number, &value); err != nil {
			log.Fatal(err)
		}
		f.rows++
		f.numbers += number
		f.values += value
	}
}
