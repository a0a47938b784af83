package executor_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/runner"
)

// signs remembers what it was asked to sign.
type signs struct {
	asked []claims.ExecutionIdentity
	err   error
}

func (s *signs) SignExecution(_ context.Context, of claims.ExecutionIdentity) (string, error) {
	s.asked = append(s.asked, of)
	return "signed-token", s.err
}

// TestIdentities: an execution gets the tokens that its environment allows, for no longer than it may run, and nothing that is told of it
// has them. What is not allowed starts nothing.
func TestIdentities(t *testing.T) {
	t.Parallel()
	control := exectest.NewControl()
	runners, _ := exectest.Start(t, control, runner.Config{})
	claim := func(id string, grant *execution.IdentityGrant) execution.Runner {
		_, err := runners.PutEnvironment(t.Context(), execution.Environment{ID: id, Image: "host", PoolSize: 1, Identity: grant})
		require.NoError(t, err)
		r, err := runners.Claim(t.Context(), execution.ClaimRequest{Environment: id, Wait: time.Minute})
		require.NoError(t, err)
		return r
	}
	allowed := claim("allowed", &execution.IdentityGrant{Audience: []string{"sts.amazonaws.com", "vault"}, TTL: 10 * time.Minute})
	usual := claim("usual", &execution.IdentityGrant{Audience: []string{"vault"}})
	closed := claim("closed", nil)
	b, signer := &bundle{control: control, runners: runners, hooks: &hooks{}, told: &told{}}, &signs{}
	b.startWith(t, executor.Config{}, executor.Deps{Teller: b.told, Identities: signer})
	defer b.stop()
	spec := func(audience string, wall time.Duration) execution.Spec {
		return execution.Spec{
			Argv: []string{"/bin/sh", "-c", "env TOKEN"}, Limits: drover.Limits{Wall: wall}, Values: []string{"", "hunter2"},
			Secrets: []execution.Secret{{Identity: audience, Env: "TOKEN"}, {Path: "db", Key: "k", Env: "OTHER"}},
		}
	}
	for _, c := range []struct {
		runner   execution.Runner
		audience string
		wall     time.Duration
		want     time.Duration
	}{
		{allowed, "vault", 0, 10 * time.Minute},
		{allowed, "sts.amazonaws.com", time.Hour, 10 * time.Minute},
		{allowed, "vault", 30 * time.Second, 90 * time.Second},
		{usual, "vault", 0, time.Hour},
	} {
		asked := spec(c.audience, c.wall)
		x, err := b.Start(t.Context(), c.runner.ID, asked)
		require.NoError(t, err)
		_, err = x.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, claims.ExecutionIdentity{
			Namespace: "default", Environment: c.runner.Environment, Runner: c.runner.ID, Execution: x.ID(), Audience: c.audience, TTL: c.want,
		}, signer.asked[len(signer.asked)-1])
		out, reader := "", x.Attach(execution.Offsets{})
		for f, err := reader.Next(t.Context()); f.Receipt == nil; f, err = reader.Next(t.Context()) {
			require.NoError(t, err)
			out += string(f.Data)
		}
		require.NoError(t, reader.Close())
		require.Equal(t, "signed-token\n", out, "the command has it")
		text, err := json.Marshal([]any{x.Info(), b.told.all()})
		require.NoError(t, err)
		require.NotContains(t, string(text), "signed-token")
		require.True(t, x.Info().Spec.Secrets[0].Mask, "its output has it not")
		require.False(t, asked.Secrets[0].Mask, "what the caller has stays as it was")
		require.Empty(t, asked.Values[0])
	}
	n := len(signer.asked)
	_, err := b.Start(t.Context(), closed.ID, spec("vault", 0))
	require.EqualError(t, err,
		`secrets[0].identity: environment "closed" does not let its executions have identities: its identity.audience can`)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	_, err = b.Start(t.Context(), allowed.ID, spec("gcp", 0))
	require.EqualError(t, err,
		`secrets[0].identity: environment "allowed" lets its executions have identities for sts.amazonaws.com, vault, not for "gcp"`)
	require.Len(t, signer.asked, n)
	signer.err = drover.Errorf(drover.Unavailable, "no key")
	_, err = b.Start(t.Context(), allowed.ID, spec("vault", 0))
	require.EqualError(t, err, "secrets[0].identity: no key")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	wrong := spec("vault", 0)
	wrong.Secrets[0].Path = "db"
	_, err = b.Start(t.Context(), allowed.ID, wrong)
	require.ErrorContains(t, err, "secrets[0]: identity: it is no item of a variable")
	list, err := b.List(t.Context(), closed.ID)
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestAWithdrawnGrantCountsForClaimedRunners: whoever keeps a runner of an environment that changed, also of one with another image by now,
// gets the tokens that the environment allows today.
func TestAWithdrawnGrantCountsForClaimedRunners(t *testing.T) {
	t.Parallel()
	control := exectest.NewControl()
	runners, _ := exectest.Start(t, control, runner.Config{})
	put := func(memory int, grant *execution.IdentityGrant) {
		env := execution.Environment{ID: "e", Image: "host", PoolSize: 1, MemoryMB: memory, Identity: grant}
		_, err := runners.PutEnvironment(t.Context(), env)
		require.NoError(t, err)
	}
	put(100, &execution.IdentityGrant{Audience: []string{"vault"}})
	r, err := runners.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute})
	require.NoError(t, err)
	b, signer := &bundle{control: control, runners: runners, hooks: &hooks{}, told: &told{}}, &signs{}
	b.startWith(t, executor.Config{}, executor.Deps{Teller: b.told, Identities: signer})
	defer b.stop()
	start := func() error {
		x, err := b.Start(t.Context(), r.ID, execution.Spec{
			Argv: []string{"/bin/sh", "-c", "true"}, Values: []string{""}, Secrets: []execution.Secret{{Identity: "vault", Env: "TOKEN"}},
		})
		if err == nil {
			_, err = x.Wait(t.Context())
		}
		return err
	}
	require.NoError(t, start())
	put(200, nil)
	require.Equal(t, drover.Forbidden, drover.CodeOf(start()))
	require.Len(t, signer.asked, 1)
	put(200, &execution.IdentityGrant{Audience: []string{"vault"}})
	require.NoError(t, start())
	require.NoError(t, runners.Release(t.Context(), r.ID))
	require.Equal(t, drover.Gone, drover.CodeOf(start()), "a runner that ended")
	require.Len(t, signer.asked, 2)
}
