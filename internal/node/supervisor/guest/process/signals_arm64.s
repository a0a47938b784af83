#include "textflag.h"

// func handlers() (taken, fault, child uintptr)
TEXT ·handlers(SB),NOSPLIT,$0-24
	MOVD $taken<>(SB), R0
	MOVD R0, taken+0(FP)
	MOVD $fault<>(SB), R0
	MOVD R0, fault+8(FP)
	MOVD $child<>(SB), R0
	MOVD R0, child+16(FP)
	RET

TEXT taken<>(SB),NOSPLIT|NOFRAME,$0
	RET

// What the kernel found (si_code > 0) goes to the runtime.
TEXT fault<>(SB),NOSPLIT|NOFRAME,$0
	MOVW 8(R1), R3
	CMPW $0, R3
	BLE  sent
	MOVD ·runtimeHandler(SB), R3
	JMP  (R3)
sent:
	RET

TEXT child<>(SB),NOSPLIT|NOFRAME,$0
	MOVW ·childEvent(SB), R0
	MOVD $·one(SB), R1
	MOVD $8, R2
	MOVD $64, R8 // write
	SVC
	RET
