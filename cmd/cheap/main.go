// Cheap shows which C memory a Go program holds, and what C costs it.
//
//	cheap record [flags] program [argument ...]
//
// runs a program, and shows the memory of its C heap.
//
//	cheap top [flags] URL
//
// shows the memory of a program that has the page of package inspect.
//
//	cheap explain [flags] profile|URL|package
//
// says where the processor time of a program that calls C goes.
//
//	cheap postmortem [flags] FILE
//
// says what held the memory of a program that was killed.
//
//	cheap version
//
// prints the version.
//
// `cheap record -h` describes the flags of a command, and so do the others.
// docs/tools.md describes the reports.
package main

import (
	"context"
	"os"
	"runtime"
)

// The main goroutine stays on the main thread: glibc gives that thread the
// arena that a program without threads allocates from, and each other thread
// one that works differently.
func init() { runtime.LockOSThread() }

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
