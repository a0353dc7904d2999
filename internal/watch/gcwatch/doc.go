// Package gcwatch calls functions after a garbage collection, and after an object has
// become unreachable. It depends on no queue of the runtime.
//
// [Next] calls a function after the next collection. [AddCleanup] and [Watch] call one
// after an object has become unreachable. Such functions must not start goroutines or
// timers inside of a bubble of testing/synctest, and those that release must not run inside
// of one another: [InBubble] and [InSection] say where the calling goroutine is.
//
// # Why not runtime.AddCleanup
//
// The runtime reports a collection by a cleanup or a finalizer of an object that becomes
// unreachable. It may lose both, or delay them for ever:
//
//   - A P that is destroyed while the runtime sweeps, because GOMAXPROCS is lowered,
//     keeps the cleanups that it has queued. They run when there are as many Ps again,
//     or never (Go 1.26.8 and 1.27.0, p.destroy in runtime/proc.go). Go lowers
//     GOMAXPROCS by itself when the CPU limit of a container is lowered.
//   - Finalizers run one after the other on one goroutine. One of them that blocks,
//     in any package of the program, stops all others for ever. So does a cleanup
//     that blocks, as long as there are fewer than eight Ps.
//
// # After a collection
//
// Each function of Next has a cleanup and a finalizer, and the first of the two calls it.
// A P may keep the cleanup, while finalizers are blocked. So while functions wait there
// is one more object, with more cleanups than a P can keep; see filler. If cleanups are
// blocked as well, [Poll] calls the functions: code that allocates calls Poll in its slow
// paths, and Poll reads the number of collections.
//
// # After an object has become unreachable
//
// There is a list of weak pointers, and a walk over it after each collection. The walk
// calls the functions whose objects are gone. Next says when a collection was.
//
// A weak pointer is the address of a word, the handle. The handle has the address of
// the object, and the sweeper sets it to 0. The walk reads the handle itself, which
// takes 2 of the walk's 10 ns for a live object. [weak.Pointer.Value] would take 20 ns,
// and has a second price: while the collector marks, Value keeps the object for one
// more collection. Walks with Value that meet the marking of each collection would
// keep all objects for ever.
//
// The handle of a dead object is 0 when its span was swept, and all spans are swept
// before the next collection begins. So a walk finds, at any time, the objects that
// died in the last collection but one. After the sweep of the last collection, it
// also finds those that died in that. A walk begins at the end of each sweep, which
// a cleanup of the runtime reports. If that cleanup did not come, a walk begins with
// the next collection. See rounds.
//
// The package calls no function before Value has confirmed that the object is gone.
// If weak pointers have another form in some version of Go, the walk uses Value
// after every second collection. See peeking.
package gcwatch
