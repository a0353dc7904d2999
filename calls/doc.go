// Package calls makes many calls of C functions for the price of one cgo call. A [List]
// records calls; [List.Run] makes them in C, one after the other. A result can be an argument
// of a later call of the list, can stop the list or skip calls, and is read after Run.
//
//	c := lite.Calls{List: calls.Get()}
//	defer c.List.Put()
//	defer C.sqlite3_clear_bindings(stmt) // it has the address of the last name
//	for _, p := range people {
//		c.BindText(stmt, 1, c.List.Text(p.Name), int32(len(p.Name)), nil)
//		c.BindInt64(stmt, 2, p.Age)
//		c.List.StopIf(calls.NotEqual(c.Step(stmt), lite.Done))
//		c.Reset(stmt)
//	}
//	err := c.List.Run(ctx)
//
// Methods such as BindText are written by github.com/cheapgo/cheap/calls/callgen, which reads the
// prototypes of C functions. [List.Repeat] has C read rows into arrays.
//
// # When a list pays
//
// A cgo call costs 20 to 30 ns before C does anything. A recorded call costs 2 to 3 ns, and 1 ns
// more with an earlier result as an argument or with a condition. A run costs one cgo call and 9 ns.
// So a list of one call is slower than the call, and a list of two calls is faster than two calls.
// The C functions themselves take as long as before. A list gains nothing if Go code must read
// each result to know what to call next, and a condition cannot decide that.
//
// # Memory
//
// A list keeps words, not pointers: it keeps no Go object alive. So a recorded pointer
// points to C memory, or is a result of [List.Bytes], [List.Text], [List.String], [List.Alloc] or
// [List.Pin]. A program that is built with -race panics
// for others. Results of these methods are valid until the list is reset or given back, and as
// long as the list is reachable: its memory is freed with it. A deferred Put or
// runtime.KeepAlive ensures that. The same is true of the columns of a [Repeat].
//
// # C
//
// Each recorded call is made by a C function that callgen has written, by the exact prototype,
// and all of these generated functions have one type. So compilers that check calls through pointers
// have nothing to report. The C functions run on the thread and the stack on which a cgo call
// would run them. C functions may call Go, unless the list is made with
// [NoCallback]; Go code that is called so must not use the list that runs.
//
// A debugger and perf show the C function of a call, and that callgen's function and
// cheap_calls_run have called it. A CPU profile of Go shows List.Run with runtime.cgocall
// below, as it does for any cgo call, and no C function.
//
// # Without cgo
//
// The package needs cgo: the environment variable CGO_ENABLED must be 1, and a C compiler must
// be installed. Without it the package has no names: the compiler says "undefined: calls.Get".
package calls
