// Package shapes is a binding of a C++ library, for docs/porting.md.
//
// The build tag cxx says that there is a C++ compiler. Without it the package is empty.
package shapes
