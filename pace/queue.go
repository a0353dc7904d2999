package pace

import (
	"container/list"
	"sync"
)

// A waitQueue has the goroutines that wait, in order. The first leaves when there is
// room for it; then the next one is the first.
type waitQueue struct {
	mu      sync.Mutex
	waiters list.List // of *waiter
}

// A waiter is the place of one goroutine in a waitQueue.
type waiter struct {
	at    *list.Element
	first chan struct{} // closed when the goroutine is the first
}

// enter is called by a goroutine that begins to wait.
func (l *waitQueue) enter() *waiter {
	t := &waiter{first: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.at = l.waiters.PushBack(t)
	if l.waiters.Len() == 1 {
		close(t.first)
	}
	return t
}

// leave is called once for each enter, by the goroutine, whatever its place is.
func (l *waitQueue) leave(t *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.waiters.Front()
	l.waiters.Remove(t.at)
	if now := l.waiters.Front(); now != nil && now != was {
		close(now.Value.(*waiter).first)
	}
}

// isFirst reports whether the goroutine is the first. A nil waiter is in no queue, and waits
// for no other goroutine: it is the first.
func (t *waiter) isFirst() bool {
	if t == nil {
		return true
	}
	select {
	case <-t.first:
		return true
	default:
		return false
	}
}

// waiting reports whether a goroutine is in the queue.
func (l *waitQueue) waiting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiters.Len() > 0
}
