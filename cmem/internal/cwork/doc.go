// Package cwork is C code that allocates, for tests. Without cgo it is empty.
package cwork
