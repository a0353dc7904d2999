// Command zstd decompresses small records, by a context of DataDog's binding. With -followed it does what
// `cheap explain` says of it:
//
//	main.unpack main.go, range, 2 functions of C: one function of C that makes the calls of a round
//
// The loop is unpack in main.go before, and unpackRounds in round.go behind. On two cores of an AMD
// EPYC the advice promised 0.45 of the processor time, and 0.50 of it was gone. At first it promised 0.30: the
// function of one's own has arguments that cgo does not check.
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/DataDog/zstd"
)

func main() {
	followed := flag.Bool("followed", false, "follow the advice")
	rounds := flag.Int("rounds", 3000, "decompress the records so often")
	flag.Parse()
	unpack := unpack
	if *followed {
		unpack = unpackRounds
	}
	fmt.Println(run(*rounds, unpack))
}

// found is what was decompressed.
type found struct{ bytes, digits int }

// run compresses records, and decompresses them again and again.
func run(rounds int, unpack func([][]byte, *found)) (f found) {
	var records [][]byte
	for i := range 5000 {
		record, err := zstd.Compress(nil, fmt.Appendf(nil, `{"id": %d, "name": "name %d", "values": [1, 2, 3, %d]}`, i, 7*i, i))
		if err != nil {
			log.Fatal(err)
		}
		records = append(records, record)
	}
	for range rounds {
		unpack(records, &f)
	}
	return f
}

// unpack is as one writes it with the binding.
func unpack(records [][]byte, f *found) {
	ctx := zstd.NewCtx()
	buffer := make([]byte, 256)
	for _, record := range records {
		text, err := ctx.Decompress(buffer, record)
		if err != nil {
			log.Fatal(err)
		}
		f.bytes += len(text)
		f.digits += int(text[7] - '0') // the first one of the number
	}
}
