#include "textflag.h"

// func rawClone(args *cloneArgs, size uintptr, m *machine, entry uintptr) (pid uintptr, errno uintptr)
// The child has the stack that args names, and never returns. It calls entry as Go does (ABIInternal).
TEXT ·rawClone(SB),NOSPLIT,$0-48
	MOVD args+0(FP), R0
	MOVD size+8(FP), R1
	MOVD m+16(FP), R19
	MOVD entry+24(FP), R20
	MOVD $435, R8 // clone3
	SVC
	CBZ  R0, child
	CMN  $4095, R0
	BCC  ok
	MOVD $-1, R4
	MOVD R4, pid+32(FP)
	NEG  R0, R0
	MOVD R0, errno+40(FP)
	RET
ok:
	MOVD R0, pid+32(FP)
	MOVD ZR, errno+40(FP)
	RET
child:
	MOVD R19, R0
	CALL (R20)
	BRK
	RET
