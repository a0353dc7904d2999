package itest

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/test/shadow"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// An arenaModel uses an arena from one goroutine.
type arenaModel struct {
	a     *cheap.Arena
	live  shadow.Set
	order []unsafe.Pointer // the live blocks, oldest first
	marks []arenaMark      // that can be released, oldest first
	stale []cheap.Mark

	// Not for arenas of the pool.
	inner *cheap.Heap
	chunk int        // what chunks have at least, in bytes
	other cheap.Mark // of another arena
}

// An arenaMark is a mark, and how many blocks were live when it was taken.
type arenaMark struct {
	cheap.Mark
	blocks int
}

// TestArenaModel is the model of [cheap.Arena] over a heap, of which nothing is
// left in the end.
func TestArenaModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHeap(t)
		var inner cheap.Allocator = h
		if rapid.Bool().Draw(t, "inner aligns") {
			inner = onlyMalloc{h}
		}
		chunk := rapid.SampledFrom([]int{0, 1, 300, 5000, 100_000}).Draw(t, "chunk size")
		m := &arenaModel{a: cheap.NewArena(inner, chunk), inner: h, chunk: max(chunk, 256)}
		if chunk == 0 {
			m.chunk = 64 << 10
		}
		other := cheap.NewArena(h, 0)
		m.other = other.Mark()
		actions := rapid.StateMachineActions(m)
		actions["FreeAll"] = func(t *rapid.T) {
			m.dropped(t, 0, 0)
			m.a.FreeAll()
			if s := h.Stats(); s.Blocks != 0 {
				t.Fatalf("%d chunks are left after FreeAll", s.Blocks)
			}
		}
		t.Repeat(actions)
		if err := m.a.Destroy(); err != nil {
			t.Fatal(err)
		}
		if err := m.a.Destroy(); err != cheap.ErrDestroyed {
			t.Fatalf("a second Destroy returns %v", err)
		}
		if s := h.Stats(); s.Blocks != 0 {
			t.Fatalf("%d chunks are left after Destroy", s.Blocks)
		}
	})
}

// TestPooledArenaModel is the model of several arenas of the pool at a time,
// which take each other's place.
func TestPooledArenaModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var taken []*arenaModel
		defer func() {
			for _, m := range taken {
				m.a.Put()
			}
		}()
		get := func(t *rapid.T) {
			m := &arenaModel{a: cheap.GetArena()}
			for _, n := range taken {
				if n.a == m.a {
					t.Fatalf("the arena is taken already")
				}
			}
			taken = append(taken, m)
		}
		draw := func(t *rapid.T) (i int) {
			if len(taken) == 0 {
				get(t) // an action that is skipped too often ends the test
			}
			return rapid.IntRange(0, len(taken)-1).Draw(t, "arena")
		}
		actions := map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for _, m := range taken {
					m.Check(t)
				}
			},
			"GetArena": get,
			"Put": func(t *rapid.T) {
				i := draw(t)
				m := taken[i]
				taken = append(taken[:i], taken[i+1:]...)
				m.dropped(t, 0, 0)
				m.a.Put()
				mustMisuse(t, "Malloc after Put", func() { m.a.Malloc(1) })
			},
			"Malloc":        func(t *rapid.T) { taken[draw(t)].Malloc(t) },
			"AlignedMalloc": func(t *rapid.T) { taken[draw(t)].AlignedMalloc(t) },
			"Burst":         func(t *rapid.T) { taken[draw(t)].Burst(t) },
			"Mark":          func(t *rapid.T) { taken[draw(t)].Mark(t) },
			"Release":       func(t *rapid.T) { taken[draw(t)].Release(t) },
			"Reset":         func(t *rapid.T) { taken[draw(t)].Reset(t) },
		}
		t.Repeat(actions)
	})
}

func (m *arenaModel) added(t *rapid.T, p unsafe.Pointer, size, align int) {
	if err := m.live.Add(p, size, size, max(align, 16)); err != nil {
		t.Fatal(err)
	}
	m.order = append(m.order, p)
}

// dropped forgets all blocks but the oldest, which are about to be freed, and
// all marks but the oldest.
func (m *arenaModel) dropped(t *rapid.T, blocks, marks int) {
	for _, p := range m.order[blocks:] {
		if err := m.live.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
	m.order = m.order[:blocks]
	for _, k := range m.marks[marks:] {
		// A mark that was taken where nothing had been allocated since the one
		// before is that one.
		if marks == 0 || k.blocks != m.marks[marks-1].blocks {
			m.stale = append(m.stale, k.Mark)
		}
	}
	m.marks = m.marks[:marks]
}

func (m *arenaModel) Malloc(t *rapid.T) {
	size := sizes.Draw(t, "size")
	m.added(t, m.a.Malloc(size), size, 1)
}

func (m *arenaModel) AlignedMalloc(t *rapid.T) {
	size, align := sizes.Draw(t, "size"), aligns(32<<10).Draw(t, "align")
	m.added(t, m.a.AlignedMalloc(size, align), size, align)
}

func (m *arenaModel) Burst(t *rapid.T) {
	for n, size := drawBurst(t, smallSizes); n > 0; n-- {
		m.added(t, m.a.Malloc(size), size, 1)
	}
}

// Free frees nothing, and minds addresses that no block can have.
func (m *arenaModel) Free(t *rapid.T) {
	p := osmem.Pointer(drawBlock(t, &m.live).Addr)
	m.a.Free(p)
	m.a.Free(nil)
	mustMisuse(t, "Free of a misaligned address", func() { m.a.Free(unsafe.Add(p, 1)) })
}

func (m *arenaModel) Mark(*rapid.T) {
	m.marks = append(m.marks, arenaMark{m.a.Mark(), len(m.order)})
}

func (m *arenaModel) Release(t *rapid.T) {
	if len(m.marks) == 0 {
		t.Skip("there is no mark")
	}
	i := rapid.IntRange(0, len(m.marks)-1).Draw(t, "mark")
	own := m.ownChunks(m.marks[i].blocks)
	m.dropped(t, m.marks[i].blocks, i+1)
	if m.inner == nil {
		m.a.Release(m.marks[i].Mark)
		return
	}
	before := m.inner.Stats().Blocks
	m.a.Release(m.marks[i].Mark)
	if after := m.inner.Stats().Blocks; after > before-own {
		t.Fatalf("Release left %d chunks of %d; %d blocks had one of their own", after, before, own)
	}
}

// ownChunks counts the blocks that are too large for any chunk but their own,
// among all but the oldest.
func (m *arenaModel) ownChunks(blocks int) (n int64) {
	for _, p := range m.order[blocks:] {
		if b, _ := m.live.Find(uintptr(p)); b.Size > m.chunk {
			n++
		}
	}
	return n
}

// ReleaseStale releases marks that must not be.
func (m *arenaModel) ReleaseStale(t *rapid.T) {
	if len(m.stale) > 0 {
		k := rapid.SampledFrom(m.stale).Draw(t, "mark")
		mustMisuse(t, "Release of a stale mark", func() { m.a.Release(k) })
	}
	mustMisuse(t, "Release of another arena's mark", func() { m.a.Release(m.other) })
}

func (m *arenaModel) Reset(t *rapid.T) {
	m.dropped(t, 0, 0)
	m.a.Reset()
}

// Check compares all contents with the reference.
func (m *arenaModel) Check(t *rapid.T) {
	if err := m.live.CheckAll(osmem.Pointer); err != nil {
		t.Fatal(err)
	}
}

// mustMisuse fails unless f panics with a [cheap.MisuseError].
func mustMisuse(t *rapid.T, what string, f func()) {
	if v := testcall.Catch(f); !isMisuse(v) {
		t.Fatalf("%s: %v", what, v)
	}
}

func isMisuse(v any) bool {
	_, ok := v.(*cheap.MisuseError)
	return ok
}
