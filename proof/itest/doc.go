// Package itest holds the tests of cheap that need modules which no user of
// cheap should have in his module graph: models that are driven by
// pgregory.net/rapid, and checks with go.uber.org/goleak that nothing stays
// behind. It is in module proof, below the path of the root module, so that
// it may import the root module's internal packages.
//
// A model runs random operations on pools, on accounts or on a slice, and
// compares them, after each, with a reference. When one fails, rapid shrinks
// the operations and prints what is left. The models of the allocators need no
// module: they are in the root's FuzzHeap, TestArenaModel and
// TestFixedBlockModel, and in package cheaptest.
package itest
