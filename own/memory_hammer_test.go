package own

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testwait"
)

// TestHammerMemory has goroutines make blocks, write to them, hand them to each
// other, verify, close and forget them, while others collect.
func TestHammerMemory(t *testing.T) {
	for _, o := range []MemoryOptions{{}, {Batch: 3}, {Pinned: 2000}, {Unshared: true}} {
		h := newHeap(t)
		m := NewMemory(h, o)
		const goroutines = 8
		stop := testwait.Loop(1, runtime.GC)
		var workers sync.WaitGroup
		handed := make(chan *Bytes, 100)
		for w := range goroutines {
			workers.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 1))
				var mine [50]*Bytes
				verify := func(b *Bytes) {
					b.Use(func(s []byte) {
						if len(s) == 0 {
							return
						}
						if want := s[0]; bytes.Count(s, []byte{want}) != len(s) {
							t.Error("a block has changed")
						}
						for i := range s {
							s[i] = byte(w)
						}
					})
				}
				for i := range times(20_000) {
					j := r.IntN(len(mine))
					if b := mine[j]; b != nil {
						mine[j] = nil
						verify(b)
						switch r.IntN(4) {
						case 0: // forget
						case 1:
							select {
							case handed <- b:
							default:
							}
						default:
							b.Close()
						}
					}
					select {
					case b := <-handed:
						verify(b)
						mine[j] = b
					default:
						n := r.IntN(200)
						if i%100 == 0 {
							m.Stats()
							n = r.IntN(100_000)
						}
						b, err := m.NewBytes(n)
						if err != nil {
							t.Error(err)
							return
						}
						s := b.Get()
						if bytes.Count(s, []byte{0}) != n {
							t.Error("a block is not zero")
						}
						for k := range s {
							s[k] = byte(i)
						}
						runtime.KeepAlive(b)
						mine[j] = b
					}
				}
			})
		}
		workers.Wait()
		stop()
		close(handed)
		for range handed {
		}
		mustBeEmpty(t, h)
		if st := m.Stats(); st.Live != 0 || st.Bytes != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// TestHammerCloseMemory closes a Memory while goroutines use it, close what
// they have and forget it, with collections all the time.
func TestHammerCloseMemory(t *testing.T) {
	for round := range times(50) {
		h := newHeap(t)
		m := NewMemory(h, MemoryOptions{Batch: 20})
		var all sync.WaitGroup
		var made atomic.Int64
		for w := range 4 {
			all.Go(func() {
				var last [10]*Mem[[64]byte]
				for i := 0; ; i++ {
					made.Add(1)
					x, err := NewMem[[64]byte](m)
					if err == ErrPoolClosed {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
					if old := last[i%10]; old != nil && i%3 == 0 {
						old.Close()
					}
					last[i%10] = x
					if w == 0 && i%500 == 0 {
						runtime.GC()
					}
					if g, err := m.NewGroup(); err == nil && i%2 == 0 {
						g.Close()
					}
				}
			})
		}
		for made.Load() < int64(round*100) {
			runtime.Gosched()
		}
		m.CloseWait(patient(t))
		all.Wait()
		wait(t, "the blocks are free", func() bool { return h.Stats().Blocks == 0 })
		if st := m.Stats(); st.Live != 0 || st.Bytes != 0 {
			t.Errorf("%+v", st)
		}
	}
}
