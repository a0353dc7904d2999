// Package leaky has a header that no machine has, and a leak.
package leaky

// #include <no_such_header.h>
// #include <stdlib.h>
import "C"

func look(s string) int { return int(C.look(C.CString(s))) }
