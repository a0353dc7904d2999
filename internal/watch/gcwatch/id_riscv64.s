#include "textflag.h"

// func GoroutineID() uintptr
TEXT ·GoroutineID(SB), NOSPLIT, $0-8
	MOV g, X10
	MOV X10, ret+0(FP)
	RET
