// Command grocksdb counts the rows of a database, by an iterator of grocksdb. With -followed it does what
// `cheap explain` says of it:
//
//	main.scan main.go, for, 4 functions of C: one function of C that makes the calls of a round
//
// The loop is scan in main.go before, and scanRounds in round.go behind. On two cores of an AMD EPYC
// the advice promised 0.40 of the processor time, and 0.46 of it was gone. At first it promised 0.26: the
// slices that the binding allocates for each key and value go as well.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/linxGnu/grocksdb"
)

func main() {
	followed := flag.Bool("followed", false, "follow the advice")
	scans := flag.Int("scans", 150, "scan the database so often")
	flag.Parse()
	scan := scan
	if *followed {
		scan = scanRounds
	}
	fmt.Println(run(*scans, 100_000, scan))
}

// found is what a scan finds.
type found struct{ rows, keys, values int }

// run makes a database in a folder of its own, and scans it again and again.
func run(scans, rows int, scan func(*grocksdb.Iterator, *found)) (f found) {
	dir, err := os.MkdirTemp("", "grocksdb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	options := grocksdb.NewDefaultOptions()
	defer options.Destroy()
	options.SetCreateIfMissing(true)
	db, err := grocksdb.OpenDb(options, dir)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	write := grocksdb.NewDefaultWriteOptions()
	defer write.Destroy()
	write.DisableWAL(true)
	for i := range rows {
		if err := db.Put(write, fmt.Appendf(nil, "key%08d", i*7919%rows), fmt.Appendf(nil, "row %d", i)); err != nil {
			log.Fatal(err)
		}
	}
	read := grocksdb.NewDefaultReadOptions()
	defer read.Destroy()
	for range scans {
		it := db.NewIterator(read)
		scan(it, &f)
		it.Close()
	}
	return f
}

// scan is as one writes it with the binding.
func scan(it *grocksdb.Iterator, f *found) {
	for it.SeekToFirst(); it.Valid(); it.Next() {
		key, value := it.Key(), it.Value()
		f.rows++
		f.keys += key.Size()
		f.values += value.Size()
		key.Free()
		value.Free()
	}
}
