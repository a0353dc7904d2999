#include "textflag.h"

// func GoroutineID() uintptr
TEXT ·GoroutineID(SB), NOSPLIT, $0-8
	MOVD g, ret+0(FP)
	RET
