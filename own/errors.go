package own

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
)

var (
	// ErrPoolClosed is returned after the pool's Close or CloseWait.
	ErrPoolClosed = errPoolClosed

	// ErrClosed is returned if an owner, or the parent of a resource, is closed.
	ErrClosed = errClosed

	// ErrInUse is returned by Disown during a Use.
	ErrInUse = errInUse

	// ErrChildren is returned by Disown while a resource that depends on this one
	// is not released, and by SetState after the first such resource.
	ErrChildren = errChildren

	// ErrInRelease is returned by Flush in a release function, in Options.OnCollect or
	// in Options.OnReleaseError, where it would wait for itself.
	ErrInRelease = errors.New("cheap: own: Flush in a release function would wait for itself")

	// ErrQueueFull is returned by Own, OwnWith, Make and Reserve while as many releases of the pool
	// are queued as [NewQueue] or [Thread] was told.
	ErrQueueFull = errQueueFull

	// ErrShared is returned by Disown for a block that shares a block of the heap
	// with others, and for a [Group]. Copy the contents instead.
	ErrShared = errShared
)

// The packages below make these errors.
var (
	errClosed, errInUse, errChildren = batch.ErrClosed, batch.ErrInUse, batch.ErrChildren
	errShared, errQueueFull          = batch.ErrShared, intake.ErrQueueFull
	errPoolClosed                    = intake.ErrPoolClosed
)

// A CloseError is returned by [Pool.Close] and [Pool.CloseWait] if owners were never closed, if Rooms had
// not ended, or if resources are not released yet. All resources that could be released are
// released.
type CloseError struct {
	Pool        string   // Options.Name
	NeverClosed int64    // owners that were neither closed nor collected before the pool was closed
	InUse       int64    // resources in Use; each is released when its last Use returns
	Waiting     int64    // resources that wait for their children, which are in Use or queued
	Releasing   int64    // resources whose release is under way elsewhere, or waits for a worker
	Queued      int64    // releases that wait for Drain or Thread
	Rooms       int64    // Rooms that had not ended before the pool was closed, under a limit of package pace
	Origins     []Origin // of the owners never closed, and of Rooms, most frequent first; with Options.Trace
	Labels      []string // of the owners never closed, sorted, each once; see Handle.SetLabel

	cause error
}

// Unwrap returns the error of the context if CloseWait has stopped waiting because of
// it, or nil.
func (e *CloseError) Unwrap() error { return e.cause }

// An Origin is a stack that made owners which were never closed.
type Origin struct {
	Count int64  // number of these owners
	Stack string // in the format of a goroutine's trace
}

// fewLabels is the number of labels in the text of a CloseError.
const fewLabels = 10

// Error describes what is left, and with Options.Trace where it was made.
func (e *CloseError) Error() string {
	var parts []string
	for _, p := range []struct {
		n    int64
		text string
	}{
		{e.NeverClosed, "were never closed"},
		{e.InUse, "are still in use"},
		{e.Waiting, "wait for their children"},
		{e.Releasing, "are being released"},
		{e.Queued, "are queued"},
		{e.Rooms, "are rooms of Reserve that were neither used nor released"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.text))
		}
	}
	text := fmt.Sprintf("cheap: %s: Pool.Close: %s", e.Pool, strings.Join(parts, ", "))
	if n := len(e.Labels); n > 0 {
		text += fmt.Sprintf(" (%s", strings.Join(e.Labels[:min(n, fewLabels)], ", "))
		if n > fewLabels {
			text += fmt.Sprintf(" and %d more", n-fewLabels)
		}
		text += ")"
	}
	for _, o := range e.Origins {
		text += fmt.Sprintf("\n%d made by\n%s", o.Count, o.Stack)
	}
	return text
}

// panicMisuse panics with a [cheap.MisuseError]. Only a Pool that NewPool has not made has no name.
func panicMisuse(name, op, format string, args ...any) {
	if name == "" {
		name, format, args = "own", "the Pool was not made by NewPool", nil
	}
	batch.PanicMisuse(name, op, format, args...)
}

// mustBeMade panics if NewPool has not made the pool.
func (p *Pool) mustBeMade(op string) {
	if p.spec.Name == "" {
		panicMisuse("", op, "")
	}
}

func panicOwnsNothing(op string) {
	panicMisuse("own", op, "it owns nothing; call Own or Make first")
}
