package own

import (
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestReleaseOfBlocks owns blocks of a heap, and frees them by [cheap.Pointer] in
// each way in which a release function is called. With the build tag cheap_gomem
// blocks are Go memory: a conversion by unsafe.Pointer ends the program there if
// the race detector is on, which brings checkptr with it.
func TestReleaseOfBlocks(t *testing.T) {
	const n = 100
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	testcall.Must(t, err)
	release := func(_ any, resources []uintptr) error {
		for _, r := range resources {
			h.Free(cheap.Pointer(r))
		}
		return nil
	}
	construct := func(resources []uintptr) (int, error) {
		for i := range resources {
			resources[i] = uintptr(h.Malloc(64))
		}
		return len(resources), nil
	}
	for _, row := range []struct {
		name string
		o    Options
		end  func(t *testing.T, p *Pool, owners []*object)
	}{
		{"Close", Options{}, func(t *testing.T, p *Pool, owners []*object) {
			for _, o := range owners {
				o.Close()
			}
		}},
		{"CloseWait", Options{}, func(t *testing.T, p *Pool, owners []*object) {
			destroyError(t, p, patient(t))
		}},
		{"collector", Options{}, func(t *testing.T, p *Pool, owners []*object) {
			clear(owners)
			collect(t, "the blocks", func() bool { return p.Stats().Live == 0 })
		}},
		{"Drain", Options{Run: new(Queue).Run()}, func(t *testing.T, p *Pool, owners []*object) {
			for _, o := range owners {
				o.Close()
			}
			drainPool(p, 0)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.o.Release, row.o.Construct = release, construct
			p := NewPool(row.o)
			owners := make([]*object, n)
			testcall.Aside(func() {
				for i := range owners {
					owners[i] = new(object)
					var err error
					if i%2 == 0 {
						err = owners[i].Own(p, h.Malloc(64), 64)
					} else {
						err = owners[i].Make(p)
					}
					testcall.Want(t, err)
					*(*byte)(owners[i].Pointer()) = 1
				}
			})
			row.end(t, p, owners)
			p.CloseWait(patient(t)) // what Make has not handed out
			drainPool(p, 0)
			if st := h.Stats(); st.Blocks != 0 {
				t.Errorf("%d blocks are left", st.Blocks)
			}
		})
	}
	testcall.Want(t, h.Destroy())
}
