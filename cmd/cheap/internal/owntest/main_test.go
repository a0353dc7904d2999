//go:build cgo && unix

package owntest

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/cheapgo/cheap/own"
)

// raceEnabled says whether the race detector runs, which makes the tests slow.
var raceEnabled = func() bool {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}()

// waitUntil calls f until it returns true, and fails if that takes long.
func waitUntil(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// collectUntil is waitUntil with a collection before each call.
func collectUntil(t *testing.T, what string, f func() bool) {
	t.Helper()
	waitUntil(t, what, func() bool {
		runtime.GC()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		own.Flush(ctx) // what waits for Drain is f's
		return f()
	})
}
