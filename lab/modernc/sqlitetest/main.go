// Sqlitetest does work in SQL, and prints a digest of all results and the cost.
//
//	go run . [-scale n] [-conns n] single|private|shared
//
// It uses the package memory of this repository. With -modfile=original.mod, which has no replace
// line for it, it uses that of modernc.org. The tests build both and compare.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"
	"time"

	"modernc.org/memory"
)

// options are the options of a work.
type options struct {
	scale int    // rows of SQL
	conns int    // number of connections at a time, for works with several
	dir   string // for databases in files; empty
}

// A result is the output of the command, in JSON.
type result struct {
	Ours    bool   // whether the memory is that of this repository
	Digest  string // of all data that was read
	Ns      int64
	PeakRSS int64 // bytes; 0 if the system does not tell
}

// works are the works, by name. Each returns a digest of the data that it has read, which
// is the same for the same scale and number of connections.
var works = map[string]func(context.Context, options) (string, error){
	"single":  single,
	"private": private,
	"shared":  shared,
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("sqlitetest: ")
	var o options
	flag.IntVar(&o.scale, "scale", 1000, "how much `work` there is to do")
	flag.IntVar(&o.conns, "conns", 4, "`number` of connections, for private and shared")
	flag.Parse()
	work := works[flag.Arg(0)]
	if work == nil || o.scale < 1 || o.conns < 1 {
		log.Fatal("name a work: single, private or shared")
	}
	r, err := measure(work, o)
	if err != nil {
		log.Fatal(err)
	}
	json.NewEncoder(os.Stdout).Encode(r)
}

// measure does a work in a directory of its own.
func measure(work func(context.Context, options) (string, error), o options) (r result, err error) {
	if o.dir, err = os.MkdirTemp("", "sqlitetest"); err != nil {
		return r, err
	}
	defer os.RemoveAll(o.dir)
	start := time.Now()
	r.Digest, err = work(context.Background(), o)
	r.Ns, r.PeakRSS = time.Since(start).Nanoseconds(), peakRSS()
	_, r.Ours = reflect.TypeFor[memory.Allocator]().FieldByName("local")
	return r, err
}

// peakRSS returns the largest resident size that the process has had.
func peakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0 // not Linux
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	return 0
}
