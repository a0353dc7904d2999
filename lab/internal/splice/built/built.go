// Package built says which runtime a program was built with.
package built

// changed is false here. A changed runtime has a variable of the same link name with
// a value, and the linker prefers the variable with a value.
var changed bool

// Changed reports whether this program runs in a runtime that package splice has
// changed.
func Changed() bool { return changed }
