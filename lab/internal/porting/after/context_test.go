//go:build cgo

package after_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cheapgo/cheap/lab/internal/porting/after"
)

// TestContext uses contexts by several goroutines, and forgets them with their meshes.
func TestContext(t *testing.T) {
	done := make(chan bool)
	for range 4 {
		go func() {
			c, err := after.NewContext()
			if err != nil {
				panic(err)
			}
			var users sync.WaitGroup
			for i := range 4 {
				users.Go(func() {
					for range 500 {
						m, err := c.NewMesh(i)
						if err != nil {
							panic(err)
						}
						if n, err := m.Points(); n != i || err != nil {
							panic(err)
						}
						if i == 0 {
							m.Close()
						}
					}
				})
			}
			users.Wait()
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	for alive, _ := after.ContextsAlive(); alive > 0; alive, _ = after.ContextsAlive() {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if _, misused := after.ContextsAlive(); misused > 0 {
		t.Errorf("the library was misused %d times", misused)
	}
}
