//go:build cgo && linux

// Command postmortem is what a test has the kernel kill: a server that keeps what C has made for each
// visit, and has a black box.
package main

/*
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) void *render(size_t n) {
	void *page = malloc(n);
	return page ? memset(page, 1, n) : 0;
}
*/
import "C"

import (
	"flag"
	"fmt"
	"log"
	"os"
	"time"
	"unsafe"

	_ "github.com/cheapgo/cheap/cmem"
	"github.com/cheapgo/cheap/inspect/blackbox"
)

const pageBytes = 64 << 10

var pages []unsafe.Pointer

//go:noinline
func visit() { pages = append(pages, C.render(pageBytes)) }

func main() {
	file := flag.String("box", "", "`path` of the black box")
	pause := flag.Duration("pause", 0, "`time` between two visits")
	wait := flag.Int("wait", 0, "after so many `MiB`, wait for the notice that the limit is near")
	flag.Parse()
	near := make(chan bool)
	o := blackbox.Options{File: *file}
	if *wait > 0 {
		o.OnNear = func(r *blackbox.Record) {
			fmt.Fprintln(os.Stderr, "near:", r.Line())
			close(near)
		}
	}
	box, err := blackbox.Start(o)
	if err != nil {
		log.Fatal(err)
	}
	defer box.Stop()
	if before := box.Previous(); before != nil {
		fmt.Println("before:", before.KilledSince, before.Last.C[0].Calls)
	}
	if flag.Arg(0) == "stop" {
		return
	}
	for {
		visit()
		time.Sleep(*pause)
		if len(pages)*pageBytes == *wait<<20 {
			<-near
		}
	}
}
