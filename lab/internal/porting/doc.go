// Package porting is the code of docs/porting.md as it is with this module: a binding of one small
// library.
package porting
