package main

import (
	"bytes"
	"context"
	"regexp"
	"sync"
	"testing"
	"time"
)

// A lineWriter waits for a line.
type lineWriter struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *lineWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// waitFor waits until an expression matches, and returns the match.
func (w *lineWriter) waitFor(t *testing.T, expression string) []string {
	t.Helper()
	e := regexp.MustCompile(expression)
	for ctx := untilDeadline(t); ; time.Sleep(5 * time.Millisecond) {
		if m := e.FindStringSubmatch(w.String()); m != nil {
			return m
		}
		if ctx.Err() != nil {
			t.Fatalf("no %s in %s", expression, w)
		}
	}
}

// untilDeadline returns the context of a test, which ends some seconds before the test program
// does: that is time to say what the test has waited for.
func untilDeadline(t *testing.T) context.Context {
	deadline, ok := t.Deadline()
	if !ok {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), deadline.Add(-5*time.Second))
	t.Cleanup(cancel)
	return ctx
}
