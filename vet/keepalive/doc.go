// Package keepalive defines an Analyzer that finds calls of C during which the owner of a pointer
// may be collected.
//
// # Analyzer keepalive
//
// keepalive: report owners that may be collected while C uses what they own
//
// A value with a finalizer, a cleanup, or an owner of package own is found unreachable as soon as
// nothing uses it any more. That may be before the function returns that it is a parameter of, and
// while C still uses the pointer that was read from it:
//
//	func (t *Tree) Len() int {
//		return int(C.tree_len(t.ptr)) // the finalizer of t may free t.ptr meanwhile
//	}
//
// The analyzer reports a call of C with a pointer from a field of such a value, or from a method
// that returns it, if nothing uses the value behind the call. The fix is
// runtime.KeepAlive behind the call, or a deferred one.
//
// It says nothing if the value is used later, on any path, if a deferred call refers to it, if it
// was stored, if its finalizer looks only at other fields, or at one that was set to nil before, or
// if all callers of an unexported function use it behind the call. A function with the line
//
//	//cheapvet:kept
//
// in its comment says that its callers keep all its arguments alive.
//
// Where more than -keepalive.group calls of a package get their pointer from the same method or
// field, there is one finding for all of them, at the first call.
//
// A variable that a function literal has captured must be used behind the calls of the literal, or
// in the literal itself if a return has it: the last caller may hold nothing else. A
// literal that is put elsewhere, such as into a field, keeps what it has captured alive.
//
// A slice of Go whose address C gets as a number is looked at in the same way: neither the
// collector nor cgo knows that C uses it.
//
// The findings are of these kinds: receiver, parameter, local and captured, for what kind of
// variable the owner is, number for a slice, and group.
package keepalive
