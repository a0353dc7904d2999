// Package ctouch touches memory in C, for the tests of package asan, whose files may not
// use cgo themselves.
//
// Built without cgo, it is empty.
package ctouch
