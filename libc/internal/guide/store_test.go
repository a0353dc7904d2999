//go:build cgo

package guide_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/libc/internal/guide"
)

// TestHammerStores uses stores by several goroutines, and forgets them with their drawers.
func TestHammerStores(t *testing.T) {
	done := make(chan error)
	use := func() (err error) {
		s, err := guide.NewStore()
		if err != nil {
			return err
		}
		var users sync.WaitGroup
		failed := make([]error, 4)
		for i := range failed {
			users.Go(func() {
				for range 500 {
					d, err := s.NewDrawer()
					if err == nil {
						_, err = s.Drawers()
					}
					if i == 0 && err == nil {
						err = d.Close()
					}
					if err != nil {
						failed[i] = err
						return
					}
				}
			})
		}
		users.Wait()
		for _, e := range failed {
			if e != nil {
				err = e
			}
		}
		return err
	}
	for range 4 {
		go func() { done <- use() }()
	}
	for range 4 {
		testcall.Must(t, <-done)
	}
	testwait.Until(t, "all stores are freed", func() bool {
		runtime.GC()
		alive, _ := guide.StoresAlive()
		return alive == 0
	})
	if _, mistakes := guide.StoresAlive(); mistakes > 0 {
		t.Errorf("the library counts %d mistakes", mistakes)
	}
}
