package own

import "github.com/cheapgo/cheap/own/internal/worker"

// A Run says on which goroutines a pool calls Release. With the zero Run a Close releases on the
// goroutine of its caller, and a few workers, which all such pools share, release what the collector
// found. [Workers], [Inline], [Thread] and [Queue.Run] return the others.
type Run struct {
	workers   int // of the pool's own; 0 for the shared ones
	inline    bool
	thread    bool
	maxQueued int64 // with a thread or a queue; 0 for no bound
	queue     *Queue
}

// Workers gives the pool n workers of its own: goroutines that release what the collector found, and
// end when nothing is queued. It is for a Release that blocks for long, on a network or a slow
// library: other pools do not wait for these workers. 0 stands for the zero Run.
func Workers(n int) Run {
	if n < 0 {
		panicMisuse("own", "Workers", "the number %d is negative", n)
	}
	return Run{workers: n}
}

// Inline lets Own, OwnWith and Make release what the collector has found, on the calling
// goroutine, once for each batch that they begin. Make does it before it calls Construct. Where
// Release calls C's free, that costs less processor time than workers, because C gets memory back
// on the thread that asks for more. If no batch is begun for some milliseconds, workers release.
//
// One Own releases for about a millisecond of real time. It calls Release with 1, 2, 4,
// 8 and then 16 resources each, until a call of Release, OnReleaseError or OnCollect
// ends after the millisecond. So it takes
//
//	1 ms + 16 resources   at most, if Release becomes slow suddenly
//	2 ms +  1 resource    at most, if Release is slow
//
// and the time in which its thread waits for a processor.
//
// The program promises that Release is quick, and that it holds no lock that Release,
// OnCollect or OnReleaseError takes while it calls one of the three. A panic of these
// functions may reach the caller of the three. After such a panic of Make, the Handle owns nothing;
// after Own and OwnWith, it owns the resource.
func Inline() Run { return Run{inline: true} }

// Thread has all releases, those of Close included, run one after the other on one
// goroutine of the pool, which is locked to an operating system thread. Both end when nothing is
// queued. So Release finds no state of an earlier thread: it makes a GL context current itself. A
// thread for a single release costs about 90 µs. maxQueued is that of [NewQueue].
func Thread(maxQueued int) Run {
	return Run{thread: true, maxQueued: mostQueued("Thread", maxQueued)}
}

// A Queue leaves the releases of pools to the program, for libraries that are bound to one thread
// which the program owns. Close and the collector only queue them, and [Queue.Drain] runs
// them. Its methods may be called from any goroutine. The zero Queue has no bound and no channel.
type Queue struct {
	queue     worker.Queue
	maxQueued int64
}

// NewQueue returns a queue. Own, OwnWith, Make and Reserve of a pool return [ErrQueueFull] while
// maxQueued releases of the pool are queued. 0 sets no bound.
//
// notify, if not nil, gets a value whenever a release is queued and none was before, and when a
// Drain returns with releases still queued. The send does not block, so the channel should have
// room for one value:
//
//	wake := make(chan struct{}, 1)
//
// The channel must not be closed. One made in a bubble of testing/synctest does not work, because
// the collector's releases are queued outside of all bubbles.
func NewQueue(maxQueued int, notify chan<- struct{}) *Queue {
	q := &Queue{maxQueued: mostQueued("NewQueue", maxQueued)}
	q.queue.Notify = notify
	return q
}

func mostQueued(op string, n int) int64 {
	if n < 0 {
		panicMisuse("own", op, "the bound %d is negative; use 0 for none", n)
	}
	return int64(n)
}

// Run returns the Run of a pool whose releases wait in the queue. Several pools may have it.
func (q *Queue) Run() Run { return Run{queue: q, maxQueued: q.maxQueued} }

// Drain calls the release functions, on the calling goroutine, for up to max queued resources, or for
// all of them if max is 0 or less. It returns the number of resources. A Close within a release
// function that Drain has called releases immediately.
//
// A parent that waits only for a child is released together with that child, and is
// not counted.
//
// Drain may be called after Close of a pool. Calls from several goroutines wait for each
// other. Within a release function that it has called Drain returns 0. A panic of the release
// function reaches the caller; the resources of that call count as released, all others stay queued.
func (q *Queue) Drain(max int) int { return q.queue.Drain(max) }
