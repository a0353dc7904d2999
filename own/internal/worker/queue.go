package worker

// A queue is a first-in-first-out queue of jobs, as a list of chunks. The zero value is
// empty. An empty queue has no chunk.
type queue[J any] struct {
	head, tail *chunk[J]
	n          int // jobs
}

type chunk[J any] struct {
	jobs []J // from the first on; its capacity does not change
	next *chunk[J]
}

const (
	firstChunkJobs = 4
	mostChunkJobs  = 256
)

func (q *queue[J]) push(j J) {
	q.n++
	t := q.tail
	switch {
	case t == nil:
		t = &chunk[J]{jobs: make([]J, 0, firstChunkJobs)}
		q.head, q.tail = t, t
	case len(t.jobs) == cap(t.jobs):
		t.next = &chunk[J]{jobs: make([]J, 0, mostChunkJobs)}
		t = t.next
		q.tail = t
	}
	t.jobs = append(t.jobs, j)
}

// first returns the first job, or nil.
func (q *queue[J]) first() *J {
	if q.head == nil {
		return nil
	}
	return &q.head.jobs[0]
}

// pop removes the first job.
func (q *queue[J]) pop() {
	q.n--
	h := q.head
	clear(h.jobs[:1])
	if h.jobs = h.jobs[1:]; len(h.jobs) > 0 {
		return
	}
	if q.head = h.next; q.head == nil {
		q.tail = nil
	}
}
