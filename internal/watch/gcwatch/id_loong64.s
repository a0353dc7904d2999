#include "textflag.h"

// func GoroutineID() uintptr
TEXT ·GoroutineID(SB), NOSPLIT, $0-8
	MOVV g, R4
	MOVV R4, ret+0(FP)
	RET
