package drover_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/workload"
)

// TestIdentities: what is wrong with an identity is refused when the job is registered, and named; the rest is where Nomad has it.
func TestIdentities(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]workload.Identity{
		"":                                           {Name: "aws", Audience: []string{"sts"}, File: true, TTL: time.Hour, ChangeMode: "restart"},
		"Name: must have 1 to 128 letters":           {Name: "a/b"},
		`Name: must be set and not be "default"`:     {},
		"ChangeMode: must be noop":                   {Name: "x", ChangeMode: "script"},
		"ChangeSignal: must be set":                  {Name: "x", ChangeMode: "signal"},
		"ChangeSignal: needs change_mode":            {Name: "x", ChangeSignal: "SIGHUP"},
		"TTL: must be at least 10s":                  {Name: "x", TTL: time.Second},
		"Filepath: needs file":                       {Name: "x", Filepath: "local/x"},
		"Filepath: must not leave":                   {Name: "x", Filepath: "../../x", File: true},
		`Filepath: "secrets/nomad_token" is that of`: {Name: "x", Filepath: "secrets/nomad_token", File: true},
		`Name: "twice" is that of another identity`:  {Name: "twice"},
		"Audience: an audience must not be empty":    {Name: "x", Audience: []string{""}},
	} {
		job := &drover.Job{ID: "j", TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: []*drover.Task{{
			Name: "t", Driver: "raw_exec", Identity: &workload.Identity{File: true},
			Identities: []*workload.Identity{{Name: "twice"}, &w},
		}}}}}
		job.Canonicalize()
		err := job.Validate()
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
	named, own := &workload.Identity{Name: "my-aws"}, &workload.Identity{}
	require.Equal(t, []string{"NOMAD_TOKEN", "secrets/nomad_token"}, []string{own.Variable(), own.Path()})
	require.Equal(t, []string{"NOMAD_TOKEN_my_aws", "secrets/nomad_my-aws.jwt"}, []string{named.Variable(), named.Path()})
	require.Equal(t, "local/x", (&workload.Identity{Filepath: "local/x"}).Path())
}
