package worker

import (
	"testing"

	"github.com/cheapgo/cheap/own/internal/ledger"
)

// TestHelpReleasesSeveral queues batches of one resource, which are released apart, as
// parents are. A call of Help releases many of them.
func TestHelpReleasesSeveral(t *testing.T) {
	const n = 500
	call, released := NewCall(0, true), 0
	k := ledger.Kind{Name: "helped", Sink: call, Release: func(_ any, words []uintptr) error {
		released += len(words)
		return nil
	}}
	call.help.armed = true // so that no worker serves
	kill(&k, n, 1, 1<<20)
	calls := 0
	for ; released < n && calls < n; calls++ {
		call.Help()
	}
	if released != n || calls > n/2 {
		t.Errorf("%d calls released %d of %d", calls, released, n)
	}
	if st := Look(); st != (State{}) || !Idle() {
		t.Errorf("%+v", st)
	}
}
