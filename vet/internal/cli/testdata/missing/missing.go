// Package missing imports what is not there.
package missing

import "C"

import "nosuch.example/module"

func name() *C.char { return C.CString(module.Name) }
