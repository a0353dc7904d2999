package cmem

import (
	"os"
	"os/signal"
	"sync"
	"time"
)

// SetRateOn has the process call [SetRate] when it gets the signal, until stop is called. With CHEAP_CMEM=ready in the
// environment,
//
//	cmem.SetRateOn(syscall.SIGUSR1, cmem.DefaultRate)
//
// turns sampling on in a process that runs. Any goroutine may call stop, and more than once.
func SetRateOn(sig os.Signal, bytes int) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, sig)
	go func() {
		for {
			select {
			case <-signals:
				SetRate(bytes)
			case <-done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		signal.Stop(signals)
		close(done)
	})
}

// Unseen returns the bytes in use in blocks that were allocated while nothing was sampled: before the first call of
// [SetRate] in a program that has begun with CHEAP_CMEM=ready, or while the rate was 0. They are what the allocator itself
// says is in use, by its own sizes, less what the samples stand for. So it is an estimate with the deviation [Stats].LiveError, and includes
// blocks that were freed and that the allocator keeps for a thread. ok is false if the allocator does not say: with musl, and with
// mimalloc. In other programs Unseen returns 0.
//
// glibc looks at each free block for that, while threads that allocate wait: 0.1 to 0.2 ms for 1,000 blocks.
func Unseen() (bytes int64, ok bool) { return unseen() }

// latelyUnseen has what Unseen has returned in the last second, or longer ago if the call takes more than a hundredth of
// the time.
var latelyUnseen struct {
	sync.Mutex
	at    time.Time
	valid time.Duration
	bytes int64
}

func unseenLately() int64 {
	l := &latelyUnseen
	l.Lock()
	defer l.Unlock()
	if d := time.Since(l.at); d < 0 || d >= l.valid { // below 0 where a test has a clock of its own
		began := time.Now()
		l.bytes, _ = unseen()
		l.at = time.Now()
		l.valid = max(time.Second, 100*l.at.Sub(began))
	}
	return l.bytes
}
