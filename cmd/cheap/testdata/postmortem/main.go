//go:build cgo && linux

// Command postmortem is what a test has the kernel kill: a server that keeps what C has made for each
// request, and has a black box.
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

var pages []unsafe.Pointer

//go:noinline
func visit(size int) { pages = append(pages, C.render(C.size_t(size))) }

func main() {
	file := flag.String("box", "", "`path` of the black box")
	pause := flag.Duration("pause", 0, "`time` between two requests")
	flag.Parse()
	box, err := blackbox.Start(blackbox.Options{File: *file})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Stop()
	if before := box.Previous(); before != nil {
		fmt.Println("killed before:", before.Last.Verdict)
	}
	if flag.Arg(0) == "stop" {
		return
	}
	for begin := time.Now(); time.Since(begin) < 10*time.Minute; time.Sleep(*pause) {
		visit(64 << 10)
	}
	fmt.Println("alive")
	os.Exit(1)
}
