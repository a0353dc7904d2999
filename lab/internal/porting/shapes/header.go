//go:build cgo && cxx

package shapes

// A binding of another module has its own copy of cheap.hpp; see the go:generate line in shape.go.
// Here the file is that of the checkout.

// #cgo CXXFLAGS: -I${SRCDIR}/../../../../internal/cxxheader
import "C"

import _ "github.com/cheapgo/cheap/internal/cxxheader" // so that a change of it is seen
