// Sqlite loads CSV files into a database and answers a query.
//
//	go run -tags=sqlite3 . [-db file] query [file.csv...]
//
// Each file becomes a table with the name of the file. See README.md.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
