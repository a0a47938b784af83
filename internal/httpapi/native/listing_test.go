package native_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/facetest"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
)

// TestExecutionsOfAllRunnersAreListed: by pages, with what a query says, and of two tenants each its own.
func TestExecutionsOfAllRunnersAreListed(t *testing.T) {
	t.Parallel()
	served := facetest.Serve(t, httpapi.Config{Resolver: writers{t}}, func(s *facetest.World) httpapi.Face {
		return native.New(native.Config{}, native.Deps{
			Environments: s.Runners, Runners: s.Runners, Executions: s.Executions, Observations: s.Executions, Clock: clock.Wall{}, Log: s.Log,
		})
	}, nil)
	ctx := t.Context()
	for _, namespace := range []string{"a", "default"} {
		c, err := client.New(served.Server.URL, client.WithToken(namespace), client.WithNamespace(namespace))
		require.NoError(t, err)
		_, _, err = c.PutEnvironment(ctx, execution.Environment{ID: "e", Image: "host", PoolSize: 1, Env: map[string]string{"SECRET": "s3cret"}})
		require.NoError(t, err)
	}
	exectest.AwaitWarm(t, served.Runners, 2)
	of := func(namespace string) (*client.Client, execution.Runner) {
		c, err := client.New(served.Server.URL, client.WithToken(namespace), client.WithNamespace(namespace))
		require.NoError(t, err)
		r, err := c.Claim(ctx, execution.ClaimRequest{Environment: "e", Wait: time.Minute})
		require.NoError(t, err)
		return c, r
	}
	a, runner := of("a")
	plain, other := of("default")
	for i := range 5 {
		spec := execution.Spec{Argv: []string{"/bin/sh", "-c", fmt.Sprint("exit ", i)}}
		x, err := a.StartExecution(ctx, runner.ID, execution.Request{Spec: spec})
		require.NoError(t, err)
		_, err = a.WaitExecution(ctx, x.ID)
		require.NoError(t, err)
	}
	long := execution.Spec{Argv: []string{"/bin/sh", "-c", "sleep 1h"}, Detach: -1}
	runs, err := plain.StartExecution(ctx, other.ID, execution.Request{Spec: long})
	require.NoError(t, err)
	defer func() { require.NoError(t, plain.Kill(ctx, runs.ID)) }()

	page, err := a.ListExecutions(ctx, execution.ListQuery{PerPage: 2, Exit: execution.ExitNonzero, Sort: "started"})
	require.NoError(t, err)
	require.Equal(t, 4, page.Total)
	require.Len(t, page.Items, 2)
	require.Equal(t, 1, page.Items[0].Receipt.ExitCode)
	require.Equal(t, "a", page.Items[0].Namespace)
	require.Equal(t, "e", page.Items[0].Environment)
	require.Empty(t, page.Items[0].Spec.Env)
	require.NotZero(t, page.Items[0].EndedAt)
	rest, err := a.ListExecutions(ctx, execution.ListQuery{PerPage: 2, Exit: execution.ExitNonzero, Sort: "started", After: page.Next})
	require.NoError(t, err)
	require.Equal(t, 4, rest.Items[1].Receipt.ExitCode)
	require.Empty(t, rest.Next)

	listed := func(c *client.Client, q execution.ListQuery) (ids []string) {
		page, err := c.ListExecutions(ctx, q)
		require.NoError(t, err)
		for _, x := range page.Items {
			ids = append(ids, x.ID)
		}
		require.Equal(t, page.Total, len(ids))
		return ids
	}
	require.Equal(t, []string{runs.ID}, listed(plain, execution.ListQuery{}))
	require.Equal(t, []string{runs.ID}, listed(plain.In("*"), execution.ListQuery{}), "what is another's is not there")
	require.Len(t, listed(a.In("*"), execution.ListQuery{}), 5)
	require.Empty(t, listed(plain.In("a"), execution.ListQuery{}))
	require.Empty(t, listed(plain.In("default"), execution.ListQuery{Environment: "a~e"}))
	require.Empty(t, listed(plain.In("*"), execution.ListQuery{Runner: runner.ID}))
	require.Len(t, listed(a, execution.ListQuery{Runner: runner.ID, Environment: "a~e"}), 5)
	require.Equal(t, []string{runs.ID}, listed(plain, execution.ListQuery{Statuses: []string{"running"}, Words: []string{"sleep"}}))
	require.Empty(t, listed(a, execution.ListQuery{Statuses: []string{"running"}}))
	_, err = a.ListExecutions(ctx, execution.ListQuery{Sort: "name"})
	require.Equal(t, drover.Invalid, code(err))
	require.ErrorContains(t, err, "started")
}
