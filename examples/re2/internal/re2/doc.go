// Package re2 is a short binding of RE2, a library of C++ for regular expressions. A
// Regexp or a Set is freed when it is closed, or after the program has forgotten it.
//
// The build tag re2 says that RE2 is installed. Without it the package is empty.
package re2

//go:generate go run github.com/cheapgo/cheap/libc/cxx
