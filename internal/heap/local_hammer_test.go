package heap

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/sizeclass"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testheap"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestHammerLocalRests has goroutines use Locals, each its own, and rest, while others take
// their caches, as the decay, Trim and a reached limit do. Each block has a pattern.
func TestHammerLocalRests(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	testheap.SetDecay(t, 1<<20)
	h := NewHeap(t, Options{})
	turns := make(chan struct{}, 2) // to stop the world all the time would leave no time for the users
	var users, others sync.WaitGroup
	for g := range 8 {
		users.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 7))
			l := h.NewLocal()
			var live shadow.Set
			live.Seed(uint64(g) << 32)
			free := func(n int) {
				b := live.At(n)
				p := osmem.Pointer(b.Addr)
				testcall.Want(t, live.Remove(p))
				l.Free(p)
			}
			for range testheap.HammerRounds(400) {
				select {
				case turns <- struct{}{}:
				default:
				}
				for range 1 + r.IntN(300) {
					size := r.IntN(600)
					switch n := r.IntN(10); {
					case n < 4 || live.Len() == 0:
						p := l.Malloc(size)
						if n == 0 {
							l.Free(p)
							if p = l.Calloc(1, size); shadow.Zero(p, size) != nil {
								t.Error("Calloc returns what is not zero")
							}
						}
						testcall.Want(t, live.Add(p, size, h.UsableSize(p), sizeclass.Quantum))
					case n < 9 || live.Len() > 100:
						free(r.IntN(live.Len()))
					default:
						b := live.At(r.IntN(live.Len()))
						q := l.Realloc(osmem.Pointer(b.Addr), size)
						testcall.Want(t, live.Move(b.Addr, q, size, h.UsableSize(q), sizeclass.Quantum))
					}
				}
				switch r.IntN(10) {
				case 0:
					l.Destroy()
					l = h.NewLocal()
				case 1:
					l = h.NewLocal() // the old one is dropped
				case 2, 3, 4:
					for range r.IntN(20) {
						runtime.Gosched() // it rests
					}
				}
			}
			for live.Len() > 0 {
				free(0)
			}
			l.Destroy()
		})
	}
	for i := range 3 {
		others.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 8))
			for range turns {
				switch n := r.IntN(30); {
				case n == 0:
					runtime.GC()
				case n == 1:
					runtime.GOMAXPROCS(1 + r.IntN(4))
				case n < 10:
					h.Trim()
				case n < 15:
					h.reclaim()
				case n < 20:
					seizeLocals(everyHeap, (*localCache).rests)
				default:
					seizeLocals(only(h), func(*localCache) bool { return r.IntN(2) == 0 })
				}
				h.Stats()
			}
		})
	}
	users.Wait()
	close(turns)
	others.Wait()
	testwait.Until(t, "the Locals that were dropped are found", func() bool {
		runtime.GC()
		h.seize.Lock()
		defer h.seize.Unlock()
		return h.locals == nil
	})
	if s := h.Stats(); s.Blocks != 0 || s.Mallocs != s.Frees {
		t.Errorf("%+v", s)
	}
	MustHoldNothing(t, h)
}
