package main

import (
	"bytes"
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
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if m := e.FindStringSubmatch(w.String()); m != nil {
			return m
		}
	}
	t.Fatalf("no %s in %s", expression, w)
	return nil
}
