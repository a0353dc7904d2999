package cache_test

import (
	"fmt"
	"time"

	"github.com/cheapgo/cheap/examples/cache/internal/cache"
	"github.com/cheapgo/cheap/pace"
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

func Example_onPressure() {
	if err := pace.Start(pace.Options{Limit: 256 << 20}); err != nil {
		panic(err)
	}
	defer pace.Stop()
	c, err := cache.New(cache.Options{Budget: 512 << 20})
	if err != nil {
		panic(err)
	}
	end := pace.OnPressure("pages", pace.Share{Weight: 2, Floor: 16 << 20, Held: c.Held}, c.Evict)

	page := make([]byte, 4000)
	for key := uint64(0); pace.ReadStats().Caches[0].Freed == 0; key++ { // until it was asked
		if err := c.Put(key, page); err != nil {
			panic(err)
		}
	}
	fmt.Println(c.Held() < 256<<20)

	end() // no call runs after that
	fmt.Println(c.Close())
	// Output:
	// true
	// <nil>
}
