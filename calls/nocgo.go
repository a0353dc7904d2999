//go:build !cgo

package calls

import "unsafe"

// This file is for builds without cgo. It declares the names of the package with a type
// parameter that the compiler cannot infer. So each use fails to compile, with a message that
// names the cause.
type (
	// Arg needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Arg[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// Condition needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Condition[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// Flags needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Flags[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// Func needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Func[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// List needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	List[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// Option needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Option[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// Repeat needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Repeat[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// Result needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Result[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// ResultType needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	ResultType[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// StopError needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	StopError[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// Texts needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Texts[needs_CGO_ENABLED_1_and_a_C_compiler any] struct{}

	// Column needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Column[T needs_CGO_ENABLED_1_and_a_C_compiler] struct{}

	// No type is one: so a Column of a type fails to compile as well.
	needs_CGO_ENABLED_1_and_a_C_compiler interface{ never() }
)

// Address needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Address[needs_CGO_ENABLED_1_and_a_C_compiler any](p unsafe.Pointer) uint64 { return 0 }

// AtLeast needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func AtLeast[needs_CGO_ENABLED_1_and_a_C_compiler any](r any, v int64) any { return nil }

// Bit needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Bit[needs_CGO_ENABLED_1_and_a_C_compiler any](b bool) uint64 { return 0 }

// Equal needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Equal[needs_CGO_ENABLED_1_and_a_C_compiler any](r any, v int64) any { return nil }

// Float needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Float[needs_CGO_ENABLED_1_and_a_C_compiler any](v float64) any { return nil }

// Get needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Get[needs_CGO_ENABLED_1_and_a_C_compiler any]() any { return nil }

// Int needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Int[needs_CGO_ENABLED_1_and_a_C_compiler any](v int64) any { return nil }

// Less needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Less[needs_CGO_ENABLED_1_and_a_C_compiler any](r any, v int64) any { return nil }

// Load32At needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Load32At[needs_CGO_ENABLED_1_and_a_C_compiler any](p unsafe.Pointer) any { return nil }

// LoadAt needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func LoadAt[needs_CGO_ENABLED_1_and_a_C_compiler any](p unsafe.Pointer) any { return nil }

// Negative needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Negative[needs_CGO_ENABLED_1_and_a_C_compiler any](r any) any { return nil }

// New needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func New[needs_CGO_ENABLED_1_and_a_C_compiler any](options ...any) any { return nil }

// Nil needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Nil[needs_CGO_ENABLED_1_and_a_C_compiler any](r any) any { return nil }

// NotEqual needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func NotEqual[needs_CGO_ENABLED_1_and_a_C_compiler any](r any, v int64) any { return nil }

// Op needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Op[needs_CGO_ENABLED_1_and_a_C_compiler any](p unsafe.Pointer) uint64 { return 0 }

// Pointer needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
func Pointer[needs_CGO_ENABLED_1_and_a_C_compiler any](p unsafe.Pointer) any { return nil }

// The constants are variables of a type that no other name has: it is in the message where one
// of them is compared, passed or assigned.
type constant_needs_CGO_ENABLED_1_and_a_C_compiler struct{}

var (
	// CopyMax needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	CopyMax constant_needs_CGO_ENABLED_1_and_a_C_compiler

	// Double needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Double constant_needs_CGO_ENABLED_1_and_a_C_compiler

	// Int32 needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Int32 constant_needs_CGO_ENABLED_1_and_a_C_compiler

	// MaxDoubles needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	MaxDoubles constant_needs_CGO_ENABLED_1_and_a_C_compiler

	// MaxIntegers needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	MaxIntegers constant_needs_CGO_ENABLED_1_and_a_C_compiler

	// NoCallback needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	NoCallback constant_needs_CGO_ENABLED_1_and_a_C_compiler

	// Uint32 needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Uint32 constant_needs_CGO_ENABLED_1_and_a_C_compiler

	// Word needs cgo: CGO_ENABLED=1 and a C compiler. See the package.
	Word constant_needs_CGO_ENABLED_1_and_a_C_compiler
)
