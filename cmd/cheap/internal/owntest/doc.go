// Package owntest holds the tests of package own that need C: resources that C
// makes, destroys and counts, with the C functions of package libc in between.
package owntest
