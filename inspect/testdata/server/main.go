// Server is a program with two leaks, for README.md of inspect. It answers some requests, prints the
// suspects, and writes the profile to the file that is its argument.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"sync"
	"unsafe"

	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/own"
)

var buffer [4096]byte // stands for what a C library allocates

var conns = own.NewPool(own.Options{
	Name:    "session.Conn",
	Batch:   1, // they are few, and each is expensive
	Release: func(any, []uintptr) error { return nil },
})

type Conn struct{ h own.Handle[unsafe.Pointer] }

func (c *Conn) Close() error { return c.h.Close() }

func dial(user int) (*Conn, error) {
	c := new(Conn)
	if err := c.h.Own(conns, unsafe.Pointer(&buffer), len(buffer)); err != nil {
		return nil, err
	}
	return c, nil
}

var errRefused = errors.New("refused")

func login(c *Conn, user int) error {
	if user%50 == 0 {
		return errRefused
	}
	return nil
}

// failed has the sessions that were refused, to slow down who tries again.
var failed struct {
	mu   sync.Mutex
	list []*Conn
}

func handle(user int) error {
	c, err := dial(user)
	if err != nil {
		return err
	}
	if err := login(c, user); err != nil {
		failed.mu.Lock()
		failed.list = append(failed.list, c)
		failed.mu.Unlock()
		return err
	}
	defer c.Close()
	if user%100 == 1 {
		return audit(user)
	}
	return nil
}

func audit(user int) error {
	c, err := dial(user)
	if err != nil {
		return err
	}
	return login(c, user)
}

func main() {
	inspect.EnableLeaks()
	for user := range 5000 {
		handle(user) // the client hears of the error
	}
	if err := inspect.Collect(context.Background()); err != nil {
		log.Fatal(err)
	}
	if err := inspect.WriteSuspects(os.Stdout); err != nil {
		log.Fatal(err)
	}
	f, err := os.Create(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if err := inspect.WriteLeaks(f); err != nil {
		log.Fatal(err)
	}
}
