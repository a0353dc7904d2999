//go:build cgo

package ctest

import "C"

// OnCallback is what ctest_callback calls. Only one goroutine at a time may use it.
var OnCallback func(x int64) int64

//export ctestCallback
func ctestCallback(x C.longlong) C.longlong { return C.longlong(OnCallback(int64(x))) }
