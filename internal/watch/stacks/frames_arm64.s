#include "textflag.h"

// func Frames(pcs *[MostFrames]uintptr) (n int)
TEXT ·Frames(SB), NOSPLIT|NOFRAME, $0-16
	MOVD pcs+0(FP), R0
	MOVD 8(g), R1   // the end of the stack
	SUB  $16, R1    // the highest place of a frame pointer and a return address
	MOVD RSP, R2    // the frame before
	SUB  $16, R2    // a frame pointer lies below the stack pointer of its frame
	MOVD R29, R3    // this frame
	MOVD ZR, R4     // n
next:
	CMP  R2, R3
	BLS  broken
	CMP  R1, R3
	BHI  broken
	MOVD 8(R3), R5
	MOVD R5, (R0)(R4<<3)
	ADD  $1, R4
	CMP  $32, R4
	BEQ  done
	MOVD R3, R2
	MOVD (R3), R3
	CBNZ R3, next
done:
	MOVD R4, n+8(FP)
	RET
broken:
	MOVD ZR, n+8(FP)
	RET
