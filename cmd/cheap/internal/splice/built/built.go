// Package built tells which runtime a program was built with.
package built

// changed is false here. A changed runtime has a variable that it calls by this
// one's name, with a value, and the linker prefers what has one.
var changed bool

// Changed reports whether this program runs in a runtime that package splice has
// changed.
func Changed() bool { return changed }
