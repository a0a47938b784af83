#include "textflag.h"

// The frames are not used: the prologues make room for them.

// func Grow8K()
TEXT ·Grow8K(SB), 0, $5000-0
	RET

// func Grow16K()
TEXT ·Grow16K(SB), 0, $10000-0
	RET
