//go:build tagged

package leaky

// #include <stdlib.h>
import "C"

func tagged(s string) { C.CString(s) }
