// Package porting is the code of docs/porting.md: bindings of one small library
// as they are without this module, in package before, and as they are with it,
// in package after. The examples of both are the same, and print the same.
package porting
