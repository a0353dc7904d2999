// Package callbackcycle defines an Analyzer that finds Go functions which C keeps, and which keep
// what C would have to drop first.
//
// # Analyzer callbackcycle
//
// callbackcycle: report functions that C keeps, and that keep their object
//
// A Go function that C calls is kept by a cgo.Handle, or by a map of the package, until C drops
// the object that it is for. If the function refers to the Go value that owns this object, then the
// value is reachable for ever, and its finalizer or cleanup never runs:
//
//	runtime.SetFinalizer(button, (*Button).free)
//	button.OnClick(func() { button.SetLabel("clicked") }) // OnClick calls cgo.NewHandle
//
// A value owns an object if its type has a finalizer, a cleanup, or an owner of package own, itself
// or in a struct that it embeds. The remedy is an own.Callback in a field of the type.
//
// The analyzer reports
//
//   - cycle: a function literal or a method value that refers to an owner, and is passed to
//     cgo.NewHandle, to Save of go-pointer, or to a map, sync.Map or slice that is a package variable
//     in a package with cgo; also through functions and methods that keep a parameter, in other
//     packages too. There the owner must be an argument of the same call, or what the method is
//     called on. Also a State of own.With that refers in any way to what OwnWith is called on.
//   - handle: a cgo.Handle in a package that deletes none and gives none to its callers.
//
// It says nothing about a handle that the same function deletes, and nothing about functions in
// variables that are assigned twice.
package callbackcycle
