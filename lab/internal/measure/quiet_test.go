package measure

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestQuiet checks that finalizers and cleanups have run when it is quiet.
func TestQuiet(t *testing.T) {
	var finalized, cleaned atomic.Int64
	const n = 2000
	done := make(chan struct{})
	go func() { // on a stack of its own, which is gone then
		for range n {
			runtime.SetFinalizer(new([64]byte), func(*[64]byte) { finalized.Add(1) })
			runtime.AddCleanup(new([64]byte), func(int) { cleaned.Add(1) }, 0)
		}
		close(done)
	}()
	<-done
	testcall.Must(t, quiet(t.Context()))
	if f, c := finalized.Load(), cleaned.Load(); f < n-1 || c < n-1 {
		t.Errorf("%d finalizers and %d cleanups have run, of %d", f, c, n)
	}
	if q := queued(); q != 0 {
		t.Errorf("%d are queued", q)
	}
}

func TestQuietInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := quiet(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
