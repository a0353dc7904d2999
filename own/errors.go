package own

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cheapgo/cheap"
)

var (
	// ErrDestroyed says that the pool is destroyed. It is the error of package
	// cheap.
	ErrDestroyed = cheap.ErrDestroyed

	// ErrClosed says that an owner is closed already.
	ErrClosed = errors.New("cheap: own: the owner is closed")

	// ErrInUse says that an owner is in Use.
	ErrInUse = errors.New("cheap: own: the resource is in use")

	// ErrChildren says that others that depend on a resource are not released.
	ErrChildren = errors.New("cheap: own: the resource has children")

	// ErrQueueFull says that Options.MaxQueued releases wait for Pool.Drain.
	ErrQueueFull = errors.New("cheap: own: too many releases are queued; call Drain")
)

// A DestroyError is returned by [Pool.Destroy] of a pool whose owners were not
// all closed. What could be released has been.
type DestroyError struct {
	Pool        string   // Options.Name
	NeverClosed int      // owners that nobody had closed
	InUse       int      // resources that are in Use still; each is released when its last Use returns
	Waiting     int      // resources that wait for their children, which are in Use or queued
	Releasing   int      // resources whose release is under way elsewhere, or waits for a worker
	Queued      int      // releases that Drain has to run
	Origins     []Origin // of those never closed, with Options.Trace, the most frequent first
}

// An Origin is a place that made owners which were never closed.
type Origin struct {
	Count int
	Stack string // as in a goroutine's trace
}

// Error says what was left, and with Options.Trace where it came from.
func (e *DestroyError) Error() string {
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{
		{e.NeverClosed, "were never closed"},
		{e.InUse, "are in use still"},
		{e.Waiting, "wait for their children"},
		{e.Releasing, "are being released"},
		{e.Queued, "are queued for Drain"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.text))
		}
	}
	text := fmt.Sprintf("cheap: %s: Pool.Destroy: %s", e.Pool, strings.Join(parts, ", "))
	for _, o := range e.Origins {
		text += fmt.Sprintf("\n%d made by\n%s", o.Count, o.Stack)
	}
	return text
}

// misuse panics with a [cheap.MisuseError].
func misuse(name, op, format string, args ...any) {
	panic(&cheap.MisuseError{Op: name + "." + op, Reason: fmt.Sprintf(format, args...)})
}

func (l *ledger) useAfterClose(op string) {
	misuse(l.pool.name, op, "it is closed; whoever closes an owner must know that nobody will use it")
}

func useOfNothing(op string) {
	misuse("own.Owner", op, "it owns nothing; Pool.Own or Pool.Make gives it a resource")
}
