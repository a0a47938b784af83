package evaluator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	for reason, code := range map[string]drover.Code{
		"exit status 2 fatal error: runtime: out of memory": drover.TooLarge,
		"exit status 2 SIGSEGV: segmentation violation\nPC=0x43997d m=7 sigcode=1 addr=0x0\n\n" +
			"goroutine 0 gp=0x2939a956c960 m=7 mp=0x2939a9433808 [idle]:\nruntime.(*spanQueue).tryDrain": drover.TooLarge,
		"signal: CPU time limit exceeded": drover.TooLarge,
		"exit status 2 panic: runtime error: invalid memory address or nil pointer dereference\n" +
			"[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]": drover.Internal,
	} {
		w := &worker{cfg: Config{What: "the text"}, reason: reason}
		require.Equal(t, code, drover.CodeOf(w.why()), reason)
	}
}
