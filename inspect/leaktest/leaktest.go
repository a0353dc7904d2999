// Package leaktest fails tests that leave blocks of heaps, resources of package own, or memory of C
// behind.
//
//	func TestImage(t *testing.T) {
//		leaktest.Check(t)
//		...
//	}
//
//	func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }
//
// A test fails when these were made in it, and are there when it ends:
//
//   - open owners of a pool or a memory, after the collector had a chance to find them;
//   - owners of a pool that the collector had to release: a Close is missing. A program that
//     leaves that to the collector says so by [AllowCollected]. For blocks of an own.Memory it
//     is allowed;
//   - blocks of a heap: more than before the test;
//   - bytes of an account of package pace: more than before.
//
// Owners are listed with the stacks that made them. For that, all pools record all owners
// until the test ends: see own.LeaksAll. Blocks of a heap are counted, and no more.
//
// What other goroutines make meanwhile counts as made in the test. So tests that are checked
// must not run in parallel with tests that make owners or blocks. Two checked tests that run at
// the same time fail. For tests in parallel there is [VerifyTestMain], which looks once, after
// all tests.
//
// [CheckC] fails a test in which what C code holds grows with each call of a function. It needs no
// owners, and counts the blocks of malloc by package cmem.
package leaktest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cheapgo/cheap/inspect/internal/collect"
	"github.com/cheapgo/cheap/internal/watch/leaks"
)

// An Option says what is no leak.
type Option func(*options)

type options struct {
	pools, heaps, accounts, collected, c []string // patterns
	runs                                 int      // of CheckC
}

// IgnorePool ignores the pools and memories whose names match a pattern of [path.Match]: those
// of a cache, for one. The pattern * matches all names.
func IgnorePool(pattern string) Option {
	return func(o *options) { o.pools = add(o.pools, "IgnorePool", pattern) }
}

// IgnoreHeap ignores the heaps whose names match a pattern, as IgnorePool does.
func IgnoreHeap(pattern string) Option {
	return func(o *options) { o.heaps = add(o.heaps, "IgnoreHeap", pattern) }
}

// IgnoreAccount ignores the accounts of package pace whose names match a pattern, as IgnorePool
// does.
func IgnoreAccount(pattern string) Option {
	return func(o *options) { o.accounts = add(o.accounts, "IgnoreAccount", pattern) }
}

// AllowCollected allows that the collector releases owners of the pools whose names match a
// pattern, as IgnorePool does: pools that are made to be used without Close. Owners that are
// open when the test ends are leaks as before.
func AllowCollected(pattern string) Option {
	return func(o *options) { o.collected = add(o.collected, "AllowCollected", pattern) }
}

func add(patterns []string, op, pattern string) []string {
	if _, err := path.Match(pattern, ""); err != nil {
		panic(fmt.Sprintf("leaktest: %s: the pattern %q is malformed; see path.Match", op, pattern))
	}
	return append(patterns, pattern)
}

// matches reports whether a name matches one of some patterns.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name) // add has looked at the pattern
		return ok || p == "*"
	})
}

// collectFor bounds the time that a check waits for releases.
const collectFor = 20 * time.Second

// Collect collects until the collector finds no more owners, and what it found is released. It
// does not wait for releases that need a call of Queue.Drain of package own.
func Collect(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), collectFor)
	defer cancel()
	if err := collect.All(ctx); err != nil {
		t.Errorf("leaktest: Collect: releases take longer than %v: %v", collectFor, err)
	}
}

// checks are the tests that are checked now, by name.
var checks struct {
	mu    sync.Mutex
	names []string
}

// Check fails the test if it leaves something behind. It looks at the end of the test, in a
// function of [testing.TB.Cleanup]. So it is best called at the beginning: what the test gives
// back in functions that it registers later is given back. What was there before the call does
// not count.
//
// It collects some times at the beginning and at the end, which takes some 10 ms each.
func Check(t testing.TB, opts ...Option) {
	t.Helper()
	o := optionsOf(opts)
	enter(t)
	Collect(t)
	generation, undo := leaks.Raise(leaks.All)
	before := takeSnapshot(generation)
	t.Cleanup(func() {
		t.Helper()
		defer leave(t.Name())
		defer undo()
		Collect(t)
		for _, l := range takeSnapshot(generation).since(before, o) {
			t.Errorf("leaktest: %s", l)
		}
	})
}

func optionsOf(opts []Option) *options {
	o := new(options)
	for _, f := range opts {
		f(o)
	}
	return o
}

// enter notes that a test is checked. One that is checked already must be its parent.
func enter(t testing.TB) {
	t.Helper()
	checks.mu.Lock()
	defer checks.mu.Unlock()
	for _, name := range checks.names {
		if t.Name() != name && !strings.HasPrefix(t.Name(), name+"/") {
			t.Errorf("leaktest: %s is checked at the same time; tests that are checked must not run in parallel, use VerifyTestMain", name)
		}
	}
	checks.names = append(checks.names, t.Name())
}

func leave(name string) {
	checks.mu.Lock()
	defer checks.mu.Unlock()
	i := slices.Index(checks.names, name)
	checks.names = slices.Delete(checks.names, i, i+1)
}

// A TestingM is a [testing.M].
type TestingM interface{ Run() int }

// VerifyTestMain runs the tests and ends the process, as TestMain has to do. If the tests have
// passed, and leave something behind that was not there before, it prints that and the exit
// status is 1.
func VerifyTestMain(m TestingM, opts ...Option) {
	os.Exit(verify(m, os.Stderr, opts))
}

func verify(m TestingM, stderr io.Writer, opts []Option) (status int) {
	o := optionsOf(opts)
	generation, undo := leaks.Raise(leaks.All)
	defer undo()
	before := takeSnapshot(generation)
	if status = m.Run(); status != 0 {
		return status
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectFor)
	defer cancel()
	collect.All(ctx) // what is not released by then is found
	for _, l := range takeSnapshot(generation).since(before, o) {
		fmt.Fprintf(stderr, "leaktest: %s\n", l)
		status = 1
	}
	return status
}
