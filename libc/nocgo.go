//go:build !cgo

package libc

import "unsafe"

// This file is for builds without cgo. It declares the names of the package with
// a type parameter that the compiler cannot infer. So each use fails to compile,
// with a message that names the cause. Without these declarations the message
// would be "undefined".
type (
	// Allocator needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Allocator[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// Option needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Option[needs_CGO_ENABLED_1_and_a_C_compiler any] int
)

// Constructor needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Constructor[needs_CGO_ENABLED_1_and_a_C_compiler any](fn, context unsafe.Pointer) func(resources []uintptr) (n int, err error) {
	return nil
}

// Destructor needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Destructor[needs_CGO_ENABLED_1_and_a_C_compiler any](fn unsafe.Pointer, options ...any) func(state any, resources []uintptr) error {
	return nil
}

// ContextDestructor needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func ContextDestructor[needs_CGO_ENABLED_1_and_a_C_compiler any](fn unsafe.Pointer, options ...any) func(state any, resources []uintptr) error {
	return nil
}

// StatusDestructor needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func StatusDestructor[needs_CGO_ENABLED_1_and_a_C_compiler any](fn unsafe.Pointer, check func(status int) error, options ...any) func(state any, resources []uintptr) error {
	return nil
}

// NoCallback needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func NoCallback[needs_CGO_ENABLED_1_and_a_C_compiler any]() {}

// NegativeFails needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func NegativeFails[needs_CGO_ENABLED_1_and_a_C_compiler any]() {}

// ZeroFails needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func ZeroFails[needs_CGO_ENABLED_1_and_a_C_compiler any]() {}

// Trim needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Trim[needs_CGO_ENABLED_1_and_a_C_compiler any]() (returned int64) { return 0 }
