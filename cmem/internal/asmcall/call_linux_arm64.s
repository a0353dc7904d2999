#include "textflag.h"

// func(call *call), by the convention of C.
TEXT call(SB), NOSPLIT|NOFRAME, $0
	SUB  $32, RSP
	STP  (R29, R30), 0(RSP)
	MOVD RSP, R29
	MOVD R0, 16(RSP)
	MOVD 0(R0), R9
	MOVD 8(R0), R0
	BL   (R9)
	MOVD 16(RSP), R9
	MOVD R0, 16(R9)
	MOVD $0, R0
	LDP  0(RSP), (R29, R30)
	ADD  $32, RSP
	RET

DATA ·trampoline(SB)/8, $call(SB)
GLOBL ·trampoline(SB), NOPTR|RODATA, $8
