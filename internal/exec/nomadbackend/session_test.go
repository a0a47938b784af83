package nomadbackend

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

func TestAReceiptSaysThatStderrWasNotApart(t *testing.T) {
	t.Parallel()
	for _, spec := range []execution.Spec{{}, {TTY: true}, {TTY: true, TTYStderr: true}} {
		s := &session{b: &Backend{deps: Deps{Clock: clock.Wall{}}}, spec: spec}
		require.Equal(t, spec.TTYStderr, s.receipt(0, nil).Error != "", "%+v", spec)
	}
}
