// Package libc has the names of the package that the analyzers know.
package libc

import "unsafe"

type Option int

const NegativeFails Option = 2

type release = func(state any, resources []uintptr) error

func Destructor(fn unsafe.Pointer, options ...Option) release        { return nil }
func ContextDestructor(fn unsafe.Pointer, options ...Option) release { return nil }
func StatusDestructor(fn unsafe.Pointer, check func(int) error, options ...Option) release {
	return nil
}
func Constructor(fn, context unsafe.Pointer) func([]uintptr) (int, error) { return nil }
