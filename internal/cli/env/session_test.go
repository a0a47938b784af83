package env

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
)

func TestEndsNameTheirReason(t *testing.T) {
	t.Parallel()
	app := &term.App{}
	for want, r := range map[string]execution.Receipt{
		"the command was ended: its runner ended: the node of the runner was lost": {
			Cause: execution.CauseRunnerGone,
			Error: "the node of the runner was lost",
		},
		"the command was ended: killed by request: it had 9 processes": {Cause: execution.CauseKilled, Error: "it had 9 processes"},
		"the command was ended: it took longer than -limit-wall":       {Cause: execution.CauseTimeout},
		"the command was not started: no such directory: /x": {
			Cause: execution.CauseStartFailed,
			Error: "no such directory: /x",
		},
	} {
		r.ExitCode = 137
		require.EqualError(t, exitOf(app, &r, false), want)
	}
}
