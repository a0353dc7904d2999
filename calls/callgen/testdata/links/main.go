// Links is a program of packages that record calls of functions of the same names.
package main

import (
	"github.com/cheapgo/cheap/calls/callgen/testdata/links/one"
	"github.com/cheapgo/cheap/calls/callgen/testdata/links/two"
)

func main() { _, _, _ = one.Calls{}, two.Calls{}, two.Others{} }
