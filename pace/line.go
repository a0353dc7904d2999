package pace

import (
	"container/list"
	"sync"
)

// A line is a queue of goroutines that wait. The first of them goes when there is
// room for it; the next one is the first then.
type line struct {
	mu    sync.Mutex
	turns list.List // of *turn
}

// A turn is the place of one goroutine in a line.
type turn struct {
	at    *list.Element
	first chan struct{} // closed when the goroutine is the first
}

// enter is called by a goroutine that begins to wait.
func (l *line) enter() *turn {
	t := &turn{first: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.at = l.turns.PushBack(t)
	if l.turns.Len() == 1 {
		close(t.first)
	}
	return t
}

// leave is called once for each enter, by a goroutine in whatever place.
func (l *line) leave(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.turns.Front()
	l.turns.Remove(t.at)
	if now := l.turns.Front(); now != nil && now != was {
		close(now.Value.(*turn).first)
	}
}

// isFirst reports whether the goroutine is the first. A goroutine without a turn is in no
// line, so it is.
func (t *turn) isFirst() bool {
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

// waiting reports whether a goroutine is in the line.
func (l *line) waiting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turns.Len() > 0
}
