//go:build linux && amd64

// Command duckdb counts the texts of a column by their lengths, by the bindings of duckdb. With -followed it
// does what `cheap explain` says of it:
//
//	C.duckdb_string_t_length: fields of C.duckdb_string_t: read the field from Go
//
// The loop is count. What tells it the length is length before, and field behind. On two cores
// of an AMD EPYC the advice promised 0.49 of the processor time, and 0.60 of it was gone: the function of C, and
// the function of the bindings around it, take some as well.
package main

import (
	"flag"
	"fmt"
	"log"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings/linux-amd64"
)

func main() {
	followed := flag.Bool("followed", false, "follow the advice")
	scans := flag.Int("scans", 60, "scan the table so often")
	flag.Parse()
	length := length
	if *followed {
		length = field
	}
	fmt.Println(run(*scans, 500_000, length))
}

// found has how many texts have each length.
type found map[uint32]int

// run makes a table, and scans it again and again.
func run(scans, rows int, length func(*duckdb.StringT) uint32) found {
	var db duckdb.Database
	var conn duckdb.Connection
	if duckdb.Open("", &db) != duckdb.StateSuccess || duckdb.Connect(db, &conn) != duckdb.StateSuccess {
		log.Fatal("the database does not open")
	}
	defer duckdb.Close(&db)
	defer duckdb.Disconnect(&conn)
	made := query(conn, fmt.Sprintf("create table t as select 'name ' || i as name from range(%d) r(i)", rows))
	duckdb.DestroyResult(&made)
	lengths := make([]int, 64)
	for range scans {
		result := query(conn, "select name from t")
		count(result, lengths, length)
		duckdb.DestroyResult(&result)
	}
	f := found{}
	for n, count := range lengths {
		if count > 0 {
			f[uint32(n)] = count
		}
	}
	return f
}

func query(conn duckdb.Connection, text string) (result duckdb.Result) {
	if duckdb.Query(conn, text, &result) != duckdb.StateSuccess {
		log.Fatal(duckdb.ResultError(&result))
	}
	return result
}

func count(result duckdb.Result, lengths []int, length func(*duckdb.StringT) uint32) {
	for {
		chunk := duckdb.FetchChunk(result)
		if chunk.Ptr == nil {
			return
		}
		texts := (*duckdb.StringT)(duckdb.VectorGetData(duckdb.DataChunkGetVector(chunk, 0)))
		list := unsafe.Slice(texts, duckdb.DataChunkGetSize(chunk))
		for i := range list {
			lengths[length(&list[i])]++
		}
		duckdb.DestroyDataChunk(&chunk)
	}
}

// length is as one writes it with the bindings.
func length(text *duckdb.StringT) uint32 { return duckdb.StringTLength(*text) }

// field reads value.pointer.length, which is at the beginning.
func field(text *duckdb.StringT) uint32 { return *(*uint32)(unsafe.Pointer(text)) }
