// Package specialstest holds tests of what hangs on the runtime's lists of
// specials: finalizers, cleanups, weak pointers, pins, profiles of the heap,
// bubbles. They say what Go promises of these, so they pass with any runtime, and
// are there to be run with one that package splice has changed.
package specialstest
