#include "textflag.h"

// func Frames(pcs *[MostFrames]uintptr) (n int)
TEXT ·Frames(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ pcs+0(FP), DI
	MOVQ (TLS), R8
	MOVQ 8(R8), R8  // the end of the stack
	SUBQ $16, R8    // the highest place of a frame pointer and a return address
	MOVQ SP, R9     // the frame before
	MOVQ BP, SI     // this frame
	XORQ AX, AX     // n
next:
	CMPQ SI, R9
	JLS  broken
	CMPQ SI, R8
	JHI  broken
	MOVQ 8(SI), CX
	MOVQ CX, (DI)(AX*8)
	INCQ AX
	CMPQ AX, $32
	JEQ  done
	MOVQ SI, R9
	MOVQ (SI), SI
	TESTQ SI, SI
	JNE  next
done:
	MOVQ AX, n+8(FP)
	RET
broken:
	MOVQ $0, n+8(FP)
	RET
