// Package itest holds the tests of cheap that need modules which no user of
// cheap should have in his module graph: models that are driven by
// pgregory.net/rapid, and checks with go.uber.org/goleak that nothing stays
// behind. It is in module proof, below the path of the root module, so that
// it may import the root module's internal packages.
//
// A model runs random operations on an allocator and compares it, after each,
// with a reference from package shadow that knows every live block. When one
// fails, rapid shrinks the operations and prints what is left.
package itest
