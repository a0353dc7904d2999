package worker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/own/internal/batch"
)

// TestNobodyDrains queues releases when the first of them has waited for more than a minute: while the
// program drains them one by one, and then no more.
func TestNobodyDrains(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	testcall.Must(t, err)
	defer func(was *os.File) { os.Stderr = was; f.Close() }(os.Stderr)
	os.Stderr = f
	k := &batch.Spec{Name: "image", Batch: 1, Numbers: true, Release: func(any, []uintptr) error { return nil }}
	q := new(Queue)
	add := func() { q.enqueue(batch.New(k, nil, nil, 1, batch.OneSentinel), 0, 1) }
	add()
	add()
	add()
	if n := q.Drain(1); n != 1 {
		t.Errorf("%d are drained", n)
	}
	q.jobs.first().since -= 2 * lateAfter
	add()
	q.drained -= 2 * lateAfter
	for range 3 {
		add()
	}
	if text, err := os.ReadFile(f.Name()); err != nil || string(text) != "cheap: image: nobody has called Queue.Drain for a minute, and 4 releases wait\n" {
		t.Errorf("%q, %v", text, err)
	}
	if n := q.Drain(0); n != 6 {
		t.Errorf("%d are drained", n)
	}
}

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
