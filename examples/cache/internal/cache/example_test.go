package cache_test

import (
	"fmt"
	"time"

	"github.com/cheapgo/cheap/examples/cache/internal/cache"
)

func Example() {
	c, err := cache.New(cache.Options{Budget: 64 << 20, TTL: time.Hour})
	if err != nil {
		panic(err)
	}
	if err := c.Put(42, []byte("a value")); err != nil {
		panic(err)
	}
	if err := c.Put(42, []byte("another value of 25 bytes")); err != nil {
		panic(err)
	}

	copied, ok := c.Get(nil, 42)
	fmt.Printf("%s, %v\n", copied, ok)

	ok = c.View(42, func(value []byte) { fmt.Println(len(value)) })
	fmt.Println(ok, c.Stats().Values, c.Stats().Bytes)

	fmt.Println(c.Close()) // an error if a block was not freed
	// Output:
	// another value of 25 bytes, true
	// 25
	// true 1 32
	// <nil>
}
