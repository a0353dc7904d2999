// Proofload writes records to a database, and then reads and writes some of them, as YCSB's workload B
// does: 95 of 100 operations are reads, and few records are asked for often.
package main

import (
	"flag"
	"math/rand/v2"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

func main() {
	records := flag.Int("records", 200_000, "how many records of 1 KB")
	operations := flag.Int("operations", 400_000, "how many reads and writes follow")
	flag.Parse()
	dir, err := os.MkdirTemp("", "proofload-")
	check(err)
	defer os.RemoveAll(dir)
	cache := pebble.NewCache(128 << 20)
	db, err := pebble.Open(dir, &pebble.Options{Cache: cache, Logger: quiet{}})
	check(err)
	cache.Unref()

	random := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 1000)
	for i := range *records {
		fill(value, random)
		check(db.Set(key(i), value, pebble.NoSync))
	}
	check(db.Flush())

	often := newZipf(random, *records)
	var reads, writes []time.Duration
	for range *operations {
		k := key(int(often.next() * 0x9e3779b1 % uint64(*records)))
		if random.IntN(100) < 95 {
			start := time.Now()
			v, closer, err := db.Get(k)
			check(err)
			if len(v) != len(value) {
				panic("a record has changed its size")
			}
			check(closer.Close())
			reads = append(reads, time.Since(start))
			continue
		}
		fill(value, random)
		start := time.Now()
		check(db.Set(k, value, pebble.NoSync))
		writes = append(writes, time.Since(start))
	}
	check(db.Close())
	report(map[string]float64{"read99": quantile(reads, 0.99), "write99": quantile(writes, 0.99)})
}

// quiet is a log that nobody reads.
type quiet struct{}

func (quiet) Infof(string, ...any)              {}
func (quiet) Errorf(string, ...any)             {}
func (quiet) Fatalf(format string, args ...any) { panic(format) }
