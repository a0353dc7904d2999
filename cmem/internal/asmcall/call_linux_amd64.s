#include "textflag.h"

// func(call *call), by the convention of C.
TEXT call(SB), NOSPLIT|NOFRAME, $0
	PUSHQ BP
	MOVQ  SP, BP
	SUBQ  $32, SP
	MOVQ  DI, -8(BP)
	MOVQ  0(DI), R10
	MOVQ  8(DI), DI
	CALL  R10
	MOVQ  -8(BP), DI
	MOVQ  AX, 16(DI)
	XORL  AX, AX
	MOVQ  BP, SP
	POPQ  BP
	RET

DATA ·trampoline(SB)/8, $call(SB)
GLOBL ·trampoline(SB), NOPTR|RODATA, $8
