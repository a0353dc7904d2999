// Cxx writes cheap.hpp into the current folder. The file is the C++ side of a binding:
// a function of C++ that destroys an object, a std::unique_ptr or a std::shared_ptr, and
// that can be the C function of libc.Destructor.
//
//	go run github.com/cheapgo/cheap/libc/cxx
//
// A binding keeps its own copy, because C++ that cgo compiles finds no header of another
// module. Next to it the binding has a header for Go,
//
//	#define IMAGE_POOL "Image" // in Go, C.IMAGE_POOL
//
//	#ifdef __cplusplus
//	extern "C" {
//	#endif
//	void *image_new(int width, int height);
//	int image_width(void *image);
//	void image_destroy(void *image);
//	#ifdef __cplusplus
//	}
//	#endif
//
// and a file of C++, here of a library that shares its images:
//
//	#include "cheap.hpp"
//	#include "image.h"
//
//	using shared = std::shared_ptr<lib::Image>;
//
//	void *image_new(int w, int h) { return cheap::give(lib::make_image(w, h)); }
//	int image_width(void *p) { return cheap::get<shared>(p)->width(); }
//	void image_destroy(void *p) { cheap::destroy<shared>(p, IMAGE_POOL); }
//
// In Go this is a pool like any other:
//
//	//go:generate go run github.com/cheapgo/cheap/libc/cxx
//
//	var images = own.NewPool(own.Options{
//		Name:    C.IMAGE_POOL,
//		CHeap:   true, // malloc's, which package cmem does not count twice then
//		Release: libc.Destructor(unsafe.Pointer(C.image_destroy)),
//	})
//
// # Exceptions
//
// An exception that a destructor lets out ends the program. A line before the message of
// the C++ library names the pool:
//
//	cheap: Image: the destructor of a resource let an exception out
//	terminate called after throwing an instance of 'std::runtime_error'
//	  what():  the disk is full
//	SIGABRT: abort
//
// All other functions that Go calls must catch what they throw, and return an error: an
// exception that reaches Go ends the program as well. If a destructor calls into Go, and
// that panics, the rest of the destructor does not run.
//
// # Versions
//
// Programs may link copies of different versions. A copy need not be renewed when the
// module is. The file needs C++11, and works with -fno-exceptions and -fno-rtti.
//
// In a module with a vendor folder, which has no commands, it is
//
//	go run -mod=mod github.com/cheapgo/cheap/libc/cxx
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/cheapgo/cheap/internal/cxxheader"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stderr))
}

// run is the command. It returns 2 for wrong arguments, and 1 if it cannot write.
func run(args []string, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintln(stderr, "usage: go run github.com/cheapgo/cheap/libc/cxx\nIt writes cheap.hpp into the current folder.")
		return 2
	}
	if err := os.WriteFile("cheap.hpp", cxxheader.Text, 0o666); err != nil {
		fmt.Fprintln(stderr, "cxx:", err)
		return 1
	}
	return 0
}
