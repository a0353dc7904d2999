// Proofload writes records to a database, then reads and writes some of them, as YCSB's workload B
// does: 95 of 100 operations are reads, and few records are asked for often. At last it makes a backup.
package main

import (
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/dgraph-io/badger/v4"
)

func main() {
	records := flag.Int("records", 200_000, "how many records of 1 KB")
	operations := flag.Int("operations", 400_000, "how many reads and writes follow")
	flag.Parse()
	dir, err := os.MkdirTemp("", "proofload-")
	check(err)
	defer os.RemoveAll(dir)
	db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil).WithBlockCacheSize(128 << 20).WithMemTableSize(16 << 20))
	check(err)

	random := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 1000)
	batch := db.NewWriteBatch()
	for i := range *records {
		fill(value, random)
		check(batch.Set(key(i), append([]byte(nil), value...)))
	}
	check(batch.Flush())

	often := newZipf(random, *records)
	var reads, writes []time.Duration
	var peak, sum float64
	for i := range *operations {
		if i%200 == 0 {
			now := anonymous()
			peak, sum = max(peak, now), sum+now
		}
		k := key(int(often.next() * 0x9e3779b1 % uint64(*records)))
		if random.IntN(100) < 95 {
			start := time.Now()
			check(db.View(func(txn *badger.Txn) error {
				item, err := txn.Get(k)
				if err != nil {
					return err
				}
				return item.Value(func(v []byte) error {
					if len(v) != len(value) {
						panic("a record has changed its size")
					}
					return nil
				})
			}))
			reads = append(reads, time.Since(start))
			continue
		}
		fill(value, random)
		start := time.Now()
		check(db.Update(func(txn *badger.Txn) error { return txn.Set(k, value) }))
		writes = append(writes, time.Since(start))
	}
	_, err = db.Backup(io.Discard, 0)
	check(err)
	peak = max(peak, anonymous())
	check(db.Close())
	report(map[string]float64{"peak": peak, "mean": sum / float64((*operations+199)/200), "read99": quantile(reads, 0.99), "write99": quantile(writes, 0.99)})
}
