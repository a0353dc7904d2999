package workloads

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cheapgo/cheap"
)

// The constants of the workloads of several threads. native.h has the same.
const (
	wordBytes = 8
	twoLines  = 128 // of the cache

	larsonPlaces            = 5000    // of each thread
	larsonLife              = 100_000 // blocks
	larsonLeast, larsonMost = 8, 1000 // bytes

	rpPlaces        = 1000       // of each thread
	rpLeast, rpMost = 16, 16_000 // bytes
	rpLoop          = 100        // blocks
	rpBatch         = 25         // blocks for another thread, after every second loop

	xmallocBatch     = 4096 // blocks
	xmallocQueue     = 4    // batches for each pair of threads
	xmallocLeast     = 16   // bytes
	xmallocDoublings = 6

	scratchSize   = 8   // bytes
	scratchWrites = 100 // of its word

	stressBlocks     = 5000 // of a session, which may be dropped
	stressKept       = 2500 // and that stay until its end
	stressPlaces     = stressBlocks + stressKept
	stressTransfer   = 1000 // places that all threads share
	stressDoublings  = 5    // from a word on
	keptDoublings    = 7
	stressLarge      = 1000 // one block in 1,000
	stressLargeTimes = 100  // is 100 times as large
	stressDrops      = 66   // of 100
	stressSwaps      = 25
)

// quota is how many of n operations a thread does.
func quota(n, threads, thread int) int {
	q := n / threads
	if thread == 0 {
		q += n % threads
	}
	return q
}

// parallel runs a function once for each thread, and adds up what they did.
func parallel(threads int, run func(thread int) Tally) (sum Tally) {
	tallies := make([]Tally, threads)
	var all sync.WaitGroup
	for thread := range threads {
		all.Go(func() { tallies[thread] = run(thread) })
	}
	all.Wait()
	for _, t := range tallies {
		sum.add(t)
	}
	return sum
}

// A server is the array of larson that goes from thread to thread.
type server struct {
	m    *cheap.Heap
	s    table
	r    random
	left int
	t    Tally
	done *sync.WaitGroup
	_    [twoLines]byte // between what two threads write
}

func larson(m *cheap.Heap, s table, n, threads int) (sum Tally) {
	servers := make([]server, threads)
	var all sync.WaitGroup
	// The blocks of the beginning are of this thread.
	for i := range servers {
		v := &servers[i]
		*v = server{m: m, s: s.from(i * larsonPlaces), r: newRandom(i), left: quota(n, threads, i), done: &all}
		for place := range uint32(larsonPlaces) {
			if v.left == 0 {
				break
			}
			v.fill(place)
		}
	}
	all.Add(threads)
	for i := range servers {
		go servers[i].live()
	}
	all.Wait()
	for i := range servers {
		freeAllOnHeap(m, servers[i].s, larsonPlaces, &servers[i].t)
		sum.add(servers[i].t)
	}
	return sum
}

func (v *server) fill(place uint32) {
	size := larsonLeast + v.r.below(larsonMost-larsonLeast+1)
	block := v.m.Malloc(int(size))
	v.t.put(block, size, place)
	v.s.set(place, block)
	v.left--
}

// live is one thread.
func (v *server) live() {
	for range min(larsonLife, v.left) {
		place := v.r.below(larsonPlaces)
		if block := v.s.at(place); block != nil {
			v.t.take(block)
			v.m.Free(block)
		}
		v.fill(place)
	}
	if v.left == 0 {
		v.done.Done()
		return
	}
	go v.live()
}

// A mailbox has a batch for a thread of rptest, or none. A batch is a block with a
// table of blocks.
type mailbox struct {
	batch atomic.Uintptr
	_     [twoLines - unsafe.Sizeof(uintptr(0))]byte
}

const rpBatchBytes = rpBatch * wordBytes

// put puts a batch, or nil, into the mailbox, and frees what was there: what others
// have sent, or what the other thread has not fetched. So at most one batch for each
// thread waits, however the threads are scheduled.
func (b *mailbox) put(m *cheap.Heap, batch unsafe.Pointer, t *Tally) {
	old := b.batch.Swap(uintptr(batch))
	blocks := table{*(*unsafe.Pointer)(unsafe.Pointer(&old))}
	if blocks.base == nil {
		return
	}
	for i := range uint32(rpBatch) {
		t.take(blocks.at(i))
		m.Free(blocks.at(i))
	}
	t.Frees++
	m.Free(blocks.base)
}

func rptest(m *cheap.Heap, s table, n, threads int) Tally {
	boxes := make([]mailbox, threads)
	t := parallel(threads, func(thread int) Tally {
		return rpThread(m, s.from(thread*rpPlaces), quota(n, threads, thread), thread, boxes)
	})
	for i := range boxes {
		boxes[i].put(m, nil, &t)
	}
	return t
}

func rpThread(m *cheap.Heap, s table, left, thread int, boxes []mailbox) (t Tally) {
	r := newRandom(thread)
	for loop := 0; left > 0; loop++ {
		for range min(rpLoop, left) {
			i := r.below(rpPlaces)
			if block := s.at(i); block != nil {
				t.take(block)
				m.Free(block)
			}
			s.set(i, rpBlock(m, &r, &t))
			left--
		}
		if loop%2 == 1 && left >= 1+rpBatch {
			batch := table{m.Malloc(rpBatchBytes)}
			t.put(batch.base, rpBatchBytes, 0)
			for i := range uint32(rpBatch) {
				batch.set(i, rpBlock(m, &r, &t))
			}
			left -= 1 + rpBatch
			boxes[(thread+1)%len(boxes)].put(m, batch.base, &t)
			boxes[thread].put(m, nil, &t)
		}
	}
	freeAllOnHeap(m, s, rpPlaces, &t)
	return t
}

// rpBlock makes a block. Half the size is more frequent.
func rpBlock(m *cheap.Heap, r *random, t *Tally) unsafe.Pointer {
	x := min(r.next(), r.next())
	size := rpLeast + uint32(uint64(x)*(rpMost-rpLeast)>>32)
	block := m.Malloc(int(size))
	t.put(block, size, x)
	return block
}

func xmalloc(m *cheap.Heap, s table, n, threads int) Tally {
	// A batch is a part of the table.
	type batch struct{ from, count int }
	full, empty := make(chan batch, xmallocQueue*threads), make(chan batch, xmallocQueue*threads)
	for i := range cap(empty) {
		empty <- batch{from: i * xmallocBatch}
	}
	var producers sync.WaitGroup
	producers.Add(threads)
	go func() {
		producers.Wait()
		close(full)
	}()
	return parallel(2*threads, func(thread int) (t Tally) {
		if thread >= threads {
			for b := range full {
				blocks := s.from(b.from)
				for i := range uint32(b.count) {
					t.take(blocks.at(i))
					m.Free(blocks.at(i))
				}
				empty <- b
			}
			return t
		}
		defer producers.Done()
		r := newRandom(thread)
		for left := quota(n, threads, thread); left > 0; {
			b := <-empty
			b.count = min(xmallocBatch, left)
			left -= b.count
			blocks := s.from(b.from)
			for i := range uint32(b.count) {
				x := r.next()
				size := xmallocSize(x)
				block := m.Malloc(int(size))
				t.put(block, size, x)
				blocks.set(i, block)
			}
			full <- b
		}
		return t
	})
}

// xmallocSize returns a power of two, or one and a half.
func xmallocSize(x uint32) uint32 {
	return (xmallocLeast + x&1*xmallocLeast/2) << (x >> 8 % xmallocDoublings)
}

func cacheScratch(m *cheap.Heap, s table, n, threads int) Tally {
	var first Tally
	threads = min(threads, n)
	for i := range uint32(threads) {
		block := m.Malloc(scratchSize)
		first.put(block, scratchSize, i)
		s.set(i, block)
	}
	t := parallel(threads, func(thread int) (t Tally) {
		place := uint32(thread)
		t.take(s.at(place))
		m.Free(s.at(place))
		for range quota(n, threads, thread) - 1 {
			block := m.Malloc(scratchSize)
			t.put(block, scratchSize, place)
			for range scratchWrites {
				*word(block)++
			}
			t.Frees++
			t.Sum += *word(block)
			m.Free(block)
		}
		return t
	})
	t.add(first)
	return t
}

func mstress(m *cheap.Heap, s table, n, threads int) Tally {
	transfer := make([]atomic.Uintptr, stressTransfer)
	t := parallel(threads, func(thread int) Tally {
		return stressThread(m, s.from(thread*stressPlaces), quota(n, threads, thread), thread, transfer)
	})
	for i := range transfer {
		if block := transfer[i].Load(); block != 0 {
			p := *(*unsafe.Pointer)(unsafe.Pointer(&block))
			t.take(p)
			m.Free(p)
		}
	}
	return t
}

func stressThread(m *cheap.Heap, s table, left, thread int, transfer []atomic.Uintptr) (t Tally) {
	r := newRandom(thread)
	kept := s.from(stressBlocks)
	for left > 0 {
		drops, keeps := uint32(stressBlocks), uint32(stressKept)
		for left > 0 && drops+keeps > 0 {
			left--
			if drops > 0 && (keeps == 0 || r.below(2) == 0) {
				s.set(stressBlocks-drops, stressBlock(m, &r, &t, stressDoublings))
				drops--
			} else {
				kept.set(stressKept-keeps, stressBlock(m, &r, &t, keptDoublings))
				keeps--
			}
			top := stressBlocks - drops
			if r.below(100) < stressDrops && top > 0 {
				i := r.below(top)
				if block := s.at(i); block != nil {
					t.take(block)
					m.Free(block)
					s.set(i, nil)
				}
			}
			if r.below(100) < stressSwaps && top > 0 {
				i, j := r.below(top), r.below(stressTransfer)
				old := transfer[j].Swap(uintptr(s.at(i)))
				s.set(i, *(*unsafe.Pointer)(unsafe.Pointer(&old)))
			}
		}
		freeAllOnHeap(m, s, stressPlaces, &t)
	}
	return t
}

func stressBlock(m *cheap.Heap, r *random, t *Tally, doublings uint32) unsafe.Pointer {
	size := uint32(wordBytes) << r.below(doublings)
	if r.below(stressLarge) == 0 {
		size *= stressLargeTimes
	}
	block := m.Malloc(int(size))
	t.put(block, size, size)
	return block
}
