// Package specialstest holds tests of what depends on the runtime's lists of
// specials: finalizers, cleanups, weak pointers, pins, profiles of the heap,
// bubbles. They test the promises of Go, so they pass with every runtime. They are
// for a runtime that package splice has changed, and have the build tag splice as the tests
// of package splice that build it.
package specialstest
