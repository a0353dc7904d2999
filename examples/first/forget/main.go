// Forget makes a thousand images of a megabyte in a second, and closes none.
package main

// #include <stdlib.h>
// #include <string.h>
import "C"

import (
	"log"
	"net/http"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/libc"
	_ "github.com/cheapgo/cheap/libc/arenas" // for programs, not for libraries
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// An Image is memory of C, which C frees when the program has forgotten the Image.
type Image struct{ h own.Handle[unsafe.Pointer] }

var images = own.NewPool(own.Options{
	Name: "Image", CHeap: true, // its memory is malloc's
	Release: libc.Destructor(unsafe.Pointer(C.free)),
})

func newImage(bytes int) (*Image, error) {
	m, p := new(Image), C.malloc(C.size_t(bytes))
	C.memset(p, 1, C.size_t(bytes)) // as a library that draws does
	if err := m.h.Own(images, p, bytes); err != nil {
		C.free(p) // the pool did not take it
		return nil, err
	}
	return m, nil
}

func main() {
	if err := pace.Start(pace.Options{LimitFromEnvironment: true}); err != nil { // the collector counts C memory
		log.Fatal(err)
	}
	inspect.EnableLeaks()                                            // records who has forgotten Close
	http.Handle("/debug/cheap/", inspect.Handler(inspect.Options{})) // answers to this machine only
	go func() { log.Fatal(http.ListenAndServe("localhost:6060", nil)) }()

	for range time.Tick(time.Millisecond) {
		if _, err := newImage(1 << 20); err != nil { // and forget it
			log.Fatal(err)
		}
	}
}
