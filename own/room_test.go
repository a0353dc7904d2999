package own

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// limited sets a bound that more bytes than there are may reach, for the time of a test. It
// returns a function that says how many bytes more are held than at the beginning.
func limited(t *testing.T, more int64) (held func() int64) {
	for range 3 { // what earlier tests have left open may need as many
		gc(t)
	}
	account.Process.SetPacer(pacer{wait: func(_ context.Context, _ int64, _ bool, take func() bool) error {
		if take() {
			return nil
		}
		return cheap.ErrLimit
	}})
	t.Cleanup(func() { account.Process.SetPacer(nil) })
	setCeiling(account.Process.Held() + more)
	// Heaps give idle memory back meanwhile, so only what resources take is compared.
	of := func() (n int64) {
		for _, a := range account.Process.All() {
			if strings.HasPrefix(a.Name(), "own") {
				n += a.Held()
			}
		}
		return n
	}
	before := of()
	return func() int64 { return of() - before }
}

// reserved reserves n rooms of a size each, which must be there.
func reserved(t *testing.T, p *Pool, rooms []Room, size int) {
	for i := range rooms {
		room, err := p.Reserve(context.Background(), size) //cheapvet:ignore closeforgotten the caller has it
		if err != nil {
			t.Error(err)
			return
		}
		rooms[i] = room
	}
}

// TestRoomForgotten drops rooms without their end. They are counted as long as they are there,
// and given back by collections, which OnCollect is told of.
func TestRoomForgotten(t *testing.T) {
	for _, row := range []struct {
		name    string
		n, size int
		o       Options
	}{
		{"small", 1000, 100, Options{}},
		{"large", 20, 1 << 20, Options{}},
		{"one", 20, 100, Options{Batch: 1}},
		{"CHeap", 20, 1 << 20, Options{CHeap: true}},
		{"Drain", 20, 1 << 20, Options{Run: new(Queue).Run()}},
		{"Inline", 20, 1 << 20, Options{Run: Inline()}},
		{"unknown", 20, 0, Options{Size: 1 << 20}},
	} {
		t.Run(row.name, func(t *testing.T) {
			size := int64(max(row.size, row.o.Size))
			sum := int64(row.n) * size
			held := limited(t, sum)
			var told atomic.Int64
			row.o.Name, row.o.Numbers = "image", true
			row.o.OnCollect = func(c Collected) {
				if c.Pool != "image, rooms" {
					t.Errorf("OnCollect is told of %+v", c)
				}
				told.Add(int64(c.Count))
			}
			row.o.Release = func(any, []uintptr) error {
				t.Error("the release function was called for a Room")
				return nil
			}
			p := NewPool(row.o)
			testcall.Aside(func() {
				rooms := make([]Room, row.n)
				reserved(t, p, rooms, row.size)
				mustStats(t, p, Stats{Rooms: int64(row.n), RoomBytes: sum})
				if held() != sum || account.Process.Reserved() != sum {
					t.Errorf("%d bytes are held, %d by rooms, want %d", held(), account.Process.Reserved(), sum)
				}
				if _, err := p.Reserve(context.Background(), row.size); !errors.Is(err, cheap.ErrLimit) {
					t.Errorf("a Reserve beyond the bound: %v", err)
				}
				runtime.GC()
				runtime.KeepAlive(rooms)
			})
			collectAtMost(t, few, "the rooms", func() bool { return p.Stats().Rooms == 0 })
			flush(t)
			if held() != 0 || account.Process.Reserved() != 0 || told.Load() != int64(row.n) {
				t.Errorf("%d bytes are held, %d by rooms, and OnCollect was told of %d of %d", held(), account.Process.Reserved(), told.Load(), row.n)
			}
			mustStats(t, p, Stats{})
			room, err := p.Reserve(context.Background(), row.size)
			testcall.Want(t, err)
			room.Close()
			mustDestroy(t, p)
		})
	}
}

// TestRoomSites has the stacks that called Reserve in the sites of the pool of rooms, with the
// level of its pool, whether that was set before the first Reserve or later.
func TestRoomSites(t *testing.T) {
	for _, before := range []bool{true, false} {
		limited(t, math.MaxInt32)
		p := NewPool(Options{Name: "image", Numbers: true, Release: released(func([]uintptr) {})})
		rooms := make([]Room, 20)
		if !before {
			reserved(t, p, rooms[:1], 100)
		}
		record(t, p, LeaksAll)
		reserved(t, p, rooms[1:], 100)
		sites := poolInfo(t, p.rooms.Load()).sites()
		live := int64(0)
		for _, s := range sites {
			if live += s.Live; len(s.PCs) > 0 && !strings.HasSuffix(runtime.FuncForPC(s.PCs[0]).Name(), ".reserved") {
				t.Errorf("before=%v: a stack begins with %s", before, runtime.FuncForPC(s.PCs[0]).Name())
			}
		}
		if n := 19; before && len(sites) != 1 || !before && len(sites) != 2 || live < int64(n) {
			t.Errorf("before=%v: %+v", before, sites)
		}
		for i := range rooms {
			rooms[i].Close()
		}
		mustDestroy(t, p)
	}
}

// TestRoomAtDestroy destroys a pool with rooms. Their bytes are given back, once, and the
// error says where they come from.
func TestRoomAtDestroy(t *testing.T) {
	held := limited(t, math.MaxInt32)
	p := NewPool(Options{Name: "image", Trace: true, Numbers: true, Release: released(func([]uintptr) {})})
	rooms := make([]Room, 20)
	reserved(t, p, rooms[:10], 100)
	reserved(t, p, rooms[10:], 1<<20)
	e := destroyError(t, p, patient(t))
	if e.Rooms != 20 || len(e.Origins) != 2 || e.Origins[0].Count != 10 || !strings.Contains(e.Error(), "20 are rooms") || !strings.Contains(e.Error(), "TestRoomAtDestroy") {
		t.Errorf("CloseWait: %v", e)
	}
	if held() != 0 || account.Process.Reserved() != 0 {
		t.Errorf("%d bytes are held, %d by rooms", held(), account.Process.Reserved())
	}
	var n Number[int]
	if err := n.OwnWith(p, 7, With{Room: rooms[0]}); err != ErrPoolClosed {
		t.Errorf("Own in a room after CloseWait: %v", err)
	}
	for i := range rooms {
		rooms[i].Close()
	}
	if held() != 0 || account.Process.Reserved() != 0 {
		t.Errorf("%d bytes are held, %d by rooms, when the rooms have ended", held(), account.Process.Reserved())
	}
	mustStats(t, p, Stats{})
}

// TestRoomMisuse passes rooms to an OwnWith that cannot use them. They stay as they are.
func TestRoomMisuse(t *testing.T) {
	held := limited(t, math.MaxInt32)
	release := released(func([]uintptr) {})
	p, other := NewPool(Options{Name: "image", Numbers: true, Release: release}), NewPool(Options{Name: "other", Numbers: true, Release: release})
	rooms := make([]Room, 1)
	reserved(t, p, rooms, 100)
	var n Number[int]
	mustMisuse(t, "other.OwnWith", func() { n.OwnWith(other, 7, With{Room: rooms[0]}) }, "the pool image")
	mustMisuse(t, "image.OwnWith", func() { n.OwnWith(p, 7, With{Room: rooms[0], Size: 100}) }, "With.Size")
	mustStats(t, p, Stats{Rooms: 1, RoomBytes: 100})
	if !n.Closed() || held() != 100 {
		t.Errorf("closed %v, %d bytes are held", n.Closed(), held())
	}
	rooms[0].Close()
	mustDestroy(t, other)
	mustDestroy(t, p)
}

// TestRoomDestroyed destroys the pool while Reserve waits. The bytes are given back.
func TestRoomDestroyed(t *testing.T) {
	held := limited(t, 0)
	p := NewPool(Options{Numbers: true, Release: released(func([]uintptr) {})})
	account.Process.SetPacer(pacer{wait: func(_ context.Context, _ int64, _ bool, take func() bool) error {
		setCeiling(account.NoBound)
		mustDestroy(t, p)
		if !take() {
			t.Error("there is no room without a limit")
		}
		return nil
	}})
	setCeiling(1)
	if _, err := p.Reserve(context.Background(), 100); err != ErrPoolClosed || held() != 0 || account.Process.Reserved() != 0 {
		t.Errorf("%v; %d bytes are held, %d by rooms", err, held(), account.Process.Reserved())
	}
}

// TestRoomKept has CheckReleased find a room that is neither used nor released, and nothing else.
func TestRoomKept(t *testing.T) {
	limited(t, math.MaxInt32)
	var kept [1]Room
	var p *Pool
	err := CheckReleased(func() {
		p = NewPool(Options{Name: "image", Numbers: true, Trace: true, Release: released(func([]uintptr) {})})
		reserved(t, p, kept[:], 100)
	})
	if err == nil || !strings.Contains(err.Error(), "1 of image, rooms\n1 made by") {
		t.Errorf("CheckReleased: %v", err)
	}
	kept[0].Close()
	mustDestroy(t, p)
	if err := CheckReleased(func() {
		p := NewPool(Options{Name: "image", Numbers: true, Release: released(func([]uintptr) {})})
		reserved(t, p, make([]Room, 10), 100)
	}); err != nil {
		t.Error(err)
	}
}

// TestHammerRooms has goroutines reserve, use, release and forget rooms while collections run,
// and the pool is destroyed in the end.
func TestHammerRooms(t *testing.T) {
	held := limited(t, math.MaxInt64/2)
	var x byte
	for range 5 {
		p := NewPool(Options{Name: "image", Release: released(func([]uintptr) {})})
		var wg sync.WaitGroup
		var failed atomic.Bool
		for g := range 4 {
			wg.Go(func() {
				for i := 0; !failed.Load(); i++ {
					room, err := p.Reserve(context.Background(), 1<<(i%18)) //cheapvet:ignore closeforgotten a third is forgotten
					switch {
					case err != nil:
						if err != ErrPoolClosed {
							t.Error(err)
						}
						failed.Store(true)
						return
					case i%3 == 0:
						room.Close()
					case i%3 == 1:
						var o object
						if o.OwnWith(p, unsafe.Pointer(&x), With{Room: room}) == nil && i%2 == 0 {
							o.Close()
						}
					}
					if i == times(2000) && g == 0 {
						p.CloseWait(context.Background()) // the error says how many are left
					} else if i%500 == 0 {
						runtime.GC()
					}
				}
			})
		}
		wg.Wait()
		flush(t)
		if held() != 0 || account.Process.Reserved() != 0 {
			t.Fatalf("%d bytes are held, %d by rooms; %+v", held(), account.Process.Reserved(), p.Stats())
		}
	}
}
