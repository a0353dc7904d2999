//go:build cgo && linux

// Command cprog leaks C memory, and writes the profile to the file that its argument names. It says
// whether package cmem is off, and what is wrong with the functions that allocate.
package main

import (
	"fmt"
	"os"

	"github.com/cheapgo/cheap/cmem"
	"github.com/cheapgo/cheap/cmem/internal/cwork"
)

//go:noinline
func leaky() {
	for range 10 {
		cwork.Site(0b1101, 100_000)
	}
}

// moved is called on a goroutine whose stack is small.
//
//go:noinline
func moved(done chan<- bool) {
	cwork.Pairs(1000, 1000) // the thread looks at the rate
	cwork.Moved(77_777)
	done <- true
}

func main() {
	if os.Getenv("CPROG_REFUSE") != "" {
		if e := cwork.Refuse(); e != 0 {
			fmt.Println("seccomp: error", e)
			os.Exit(1)
		}
	}
	cmem.SetRate(1)
	cwork.Pairs(1000, 1000) // the thread looks at the rate
	leaky()
	done := make(chan bool)
	go moved(done)
	<-done
	back := cwork.Back(2, 50_000)
	fmt.Printf("off: %s\nwrong: %s\n", cmem.Off(), cwork.Conform())
	cwork.Free(back)
	f, err := os.Create(os.Args[1])
	if err == nil {
		err = cmem.WriteProfile(f)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
