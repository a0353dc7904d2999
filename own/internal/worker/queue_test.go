package worker

import "testing"

// TestQueue compares a queue with a slice.
func TestQueue(t *testing.T) {
	var q queue[uint32]
	var want []uint32
	next := uint32(0)
	for round := range 2000 {
		if round/300%2 == 0 || round%3 == 0 {
			q.push(next)
			want = append(want, next)
			next++
		} else if len(want) > 0 {
			q.pop()
			want = want[1:]
		}
		for c := q.head; c != nil; c = c.next {
			if cap(c.jobs) > mostChunkJobs {
				t.Fatalf("round %d: a chunk of %d jobs, which push has copied", round, cap(c.jobs))
			}
		}
		switch j := q.first(); {
		case len(want) == 0 && (j != nil || q != queue[uint32]{}):
			t.Fatalf("round %d: the queue should be empty", round)
		case len(want) > 0 && (j == nil || *j != want[0]):
			t.Fatalf("round %d: the first is %v, want %d", round, j, want[0])
		}
	}
}
