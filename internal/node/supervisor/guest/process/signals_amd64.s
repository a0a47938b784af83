#include "textflag.h"

// func handlers() (taken, fault, child uintptr)
TEXT ·handlers(SB),NOSPLIT,$0-24
	LEAQ taken<>(SB), AX
	MOVQ AX, taken+0(FP)
	LEAQ fault<>(SB), AX
	MOVQ AX, fault+8(FP)
	LEAQ child<>(SB), AX
	MOVQ AX, child+16(FP)
	RET

TEXT taken<>(SB),NOSPLIT|NOFRAME,$0
	RET

// What the kernel found (si_code > 0) goes to the runtime.
TEXT fault<>(SB),NOSPLIT|NOFRAME,$0
	MOVL  8(SI), AX
	TESTL AX, AX
	JLE   sent
	MOVQ  ·runtimeHandler(SB), AX
	JMP   AX
sent:
	RET

TEXT child<>(SB),NOSPLIT|NOFRAME,$0
	MOVL ·childEvent(SB), DI
	LEAQ ·one(SB), SI
	MOVL $8, DX
	MOVL $1, AX // write
	SYSCALL
	RET
