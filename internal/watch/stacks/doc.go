// Package stacks tells where in the program a call comes from: it reads the return addresses on
// the stack of the calling goroutine, and has tables with an entry for each stack.
package stacks
