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

// Flags name secrets as the API takes them.
func TestSecretFlags(t *testing.T) {
	t.Parallel()
	f := &execFlags{secrets: []string{"A=db#password"}, secretFiles: []string{"key=app/tls@prod#k#1"}, mask: true}
	r, err := f.request([]string{"true"}, nil)
	require.NoError(t, err)
	require.Equal(t, []execution.Secret{
		{Path: "db", Key: "password", Env: "A", Mask: true}, {Namespace: "prod", Path: "app/tls", Key: "k#1", File: "key", Mask: true},
	}, r.Secrets)
	r, err = (&execFlags{identities: []string{"T=sts.amazonaws.com"}, identityFiles: []string{"jwt=https://v=1"}}).request(nil, nil)
	require.NoError(t, err)
	require.Equal(t, []execution.Secret{{Identity: "sts.amazonaws.com", Env: "T"}, {Identity: "https://v=1", File: "jwt"}}, r.Secrets)
	for _, wrong := range []string{"A", "=x", "A="} {
		_, err = (&execFlags{identities: []string{wrong}}).request(nil, nil)
		require.ErrorContains(t, err, "-identity")
	}
	for _, wrong := range []string{"A", "A=db", "=db#k", "A=#k", "A=db#"} {
		_, err = (&execFlags{secretFiles: []string{wrong}}).request(nil, nil)
		require.ErrorContains(t, err, "-secret-file")
	}
}
