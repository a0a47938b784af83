#include "textflag.h"

// func rawClone(args *cloneArgs, size uintptr, m *machine, entry uintptr) (pid uintptr, errno uintptr)
// The child has the stack that args names, and never returns. It calls entry as Go does (ABIInternal): the wrapper for
// assembler would tell the race detector of it.
TEXT ·rawClone(SB),NOSPLIT,$0-48
	MOVQ args+0(FP), DI
	MOVQ size+8(FP), SI
	MOVQ m+16(FP), R13
	MOVQ entry+24(FP), R12
	MOVL $435, AX // clone3
	SYSCALL
	TESTQ AX, AX
	JEQ  child
	CMPQ AX, $0xfffffffffffff001
	JLS  ok
	NEGQ AX
	MOVQ $-1, pid+32(FP)
	MOVQ AX, errno+40(FP)
	RET
ok:
	MOVQ AX, pid+32(FP)
	MOVQ $0, errno+40(FP)
	RET
child:
	ANDQ  $~15, SP
	XORPS X15, X15
	MOVQ  R13, AX
	CALL  R12
	INT   $3
	RET
