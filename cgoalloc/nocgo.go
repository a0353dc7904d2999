//go:build !cgo

package cgoalloc

import "unsafe"

// This file is for builds without cgo. It declares the names of the package with
// a type parameter that the compiler cannot infer. So each use fails to compile,
// with a message that names the cause. Without these declarations the message
// would be "undefined".
type (
	// Allocator needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Allocator[needs_CGO_ENABLED_1_and_a_C_compiler any] interface{}

	// ArenaAllocator needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	ArenaAllocator[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// DefaultAllocator needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	DefaultAllocator[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// FallbackAllocator needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	FallbackAllocator[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// FixedBlockAllocator needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	FixedBlockAllocator[needs_CGO_ENABLED_1_and_a_C_compiler any] interface{}
)

// CBytes needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func CBytes[needs_CGO_ENABLED_1_and_a_C_compiler any](allocator any, b []byte) unsafe.Pointer {
	return nil
}

// CString needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func CString[needs_CGO_ENABLED_1_and_a_C_compiler any](allocator any, str string) unsafe.Pointer {
	return nil
}

// CreateArenaAllocator needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func CreateArenaAllocator[needs_CGO_ENABLED_1_and_a_C_compiler any](inner any) *ArenaAllocator[needs_CGO_ENABLED_1_and_a_C_compiler] {
	return nil
}

// CreateFallbackAllocator needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func CreateFallbackAllocator[needs_CGO_ENABLED_1_and_a_C_compiler any](fixedBlock, fallback any) *FallbackAllocator[needs_CGO_ENABLED_1_and_a_C_compiler] {
	return nil
}

// CreateFixedBlockAllocator needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func CreateFixedBlockAllocator[needs_CGO_ENABLED_1_and_a_C_compiler any](inner any, pageSize, blockSize, alignment uintptr) (FixedBlockAllocator[needs_CGO_ENABLED_1_and_a_C_compiler], error) {
	return nil, nil
}
