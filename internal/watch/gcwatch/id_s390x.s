#include "textflag.h"

// func GoroutineID() uintptr
TEXT ·GoroutineID(SB), NOSPLIT, $0-8
	MOVD g, R2
	MOVD R2, ret+0(FP)
	RET
