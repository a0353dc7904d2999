package batch

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/race"
)

// The pages of batches with more than one page are outside of the Go heap. In the Go heap
// they would be two thirds of what owners add, and make the collector run more often. A
// page goes back when two things are true. No owner is left that could read its entries:
// the collector reports that. And all its entries are gone, or claimed for the last time:
//
//	a batch that was not split   lost, and its last entry is gone
//	one that was split           the sentinels of the page are claimed; or all are lost, and
//	                             the last entry of the batch is gone
//
// A goroutine that reads an entry has its sentinel, and keeps that alive until it has
// done so; or it holds Batch.mu, under which pages go back; or it knows that the entry
// is in a queue, waits for a child, or is that of a batch without sentinels. The race
// detector knows Go's memory only, so with it all pages are in the Go heap.
var store struct {
	mu    sync.Mutex
	pages *cheap.FixedBlock // under mu
	used  atomic.Int64      // bytes

	garbage []byte // under mu; nil
}

func init() {
	store.pages = cheap.NewFixedBlock(units{}, cheap.FixedBlockOptions{BlockSize: pageBytes})
}

// useStore is false where nothing tells when an owner is gone, and where the store would
// be in Go memory as well.
var useStore = !Leak && !race.Build && !osmem.GoBacked

const pageBytes = int(EntrySize << pageShift)

// newPages makes the pages for n entries.
func (b *Batch) newPages(n uint32) {
	if b.pageShift == wholeShift {
		b.pages = b.onePage[:]
		b.onePage[0] = unsafe.Pointer(unsafe.SliceData(make([]Entry, n)))
		return
	}
	b.pages = make([]unsafe.Pointer, (n+1<<pageShift-1)>>pageShift)
	if useStore && takePages(b.pages) {
		b.outside = true
		return
	}
	for j := range b.pages {
		b.pages[j] = unsafe.Pointer(new([1 << pageShift]Entry))
	}
}

// takePages fills the slice with pages of the store, and reports whether it did.
func takePages(pages []unsafe.Pointer) bool {
	store.mu.Lock()
	defer store.mu.Unlock()
	for j := range pages {
		if pages[j] = store.pages.Malloc(pageBytes); pages[j] == nil {
			for _, p := range pages[:j] {
				store.pages.Free(p)
			}
			return false
		}
		clear(unsafe.Slice((*byte)(pages[j]), pageBytes))
	}
	store.used.Add(int64(len(pages) * pageBytes))
	// The collector does not know what owners hold in C. The less Go memory they take, the
	// later it begins, and the more of their resources are dead and wait for it. So the
	// pages count as they would in the Go heap: as garbage of their size, which is gone
	// after the next collection.
	store.garbage = make([]byte, len(pages)*pageBytes)
	store.garbage = nil
	return true
}

// dropPage drops a page of a batch that was split. The caller holds b.mu.
func (b *Batch) dropPage(page uint32) {
	// Nothing reads it without b.mu any more.
	p := b.pages[page]
	b.pages[page] = nil
	if b.outside && p != nil {
		store.mu.Lock()
		defer store.mu.Unlock()
		store.pages.Free(p)
		store.used.Add(-int64(pageBytes))
	}
}

// dropPages drops all pages if nothing needs them. The caller holds b.mu.
func (b *Batch) dropPages() {
	if gone, _ := b.Gone(); !b.outside || !b.unreachable || uint32(gone) != b.n {
		return
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	for j, p := range b.pages {
		if b.pages[j] = nil; p != nil {
			store.pages.Free(p)
			store.used.Add(-int64(pageBytes))
		}
	}
}

// Outside returns the bytes of the pages in the store that are in use.
func Outside() int64 { return store.used.Load() }
