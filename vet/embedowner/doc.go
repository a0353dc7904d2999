// Package embedowner defines an Analyzer that finds structs which embed an owner.
//
// # Analyzer embedowner
//
// embedowner: report structs that embed an owner of package own
//
// A struct that embeds an own.Handle or an own.Number has all methods of it as its own. So any code with an Image may call Disown, after which the pool does not release what the
// Image owns, and KeepAlive or Resize, which are for the binding:
//
//	type Image struct {
//		own.Handle[*C.image] // write a field that is not exported: h own.Handle[*C.image]
//	}
//
// The analyzer looks at the types, so it sees an owner through an alias, and a pointer to one. It
// says nothing about package own, whose tests call all methods of a Handle, and about structs that
// embed a struct which embeds an owner: the inner one is reported where it is declared.
//
// The findings are of one kind: embedded.
package embedowner
