package native_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/facetest"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// writers resolves a secret to a caller who may write in the namespace of that name alone.
type writers struct{ t *testing.T }

func (w writers) Resolve(secret acl.Secret) (*rights.Caller, error) {
	p, err := policy.Parse(fmt.Sprintf("namespace %q { policy = \"write\" }", string(secret)))
	require.NoError(w.t, err)
	return &rights.Caller{
		Token: &acl.Token{AccessorID: "of " + string(secret), Type: acl.ClientToken}, Rights: rights.Compile(p),
	}, nil
}

// Two tenants have environments of the same id. Each sees, claims, uses and ends its own runners; what is the other's is not there.
func TestTenants(t *testing.T) {
	t.Parallel()
	served := facetest.Serve(t, httpapi.Config{Resolver: writers{t}}, func(s *facetest.World) httpapi.Face {
		return native.New(native.Config{}, native.Deps{
			Environments: s.Runners, Runners: s.Runners, Executions: s.Executions, Observations: s.Executions, Receipts: receipts{},
			Clock: clock.Wall{}, Log: s.Log,
		})
	}, nil)
	ctx := t.Context()
	of := func(token, namespace string) *client.Client {
		c, err := client.New(served.Server.URL, client.WithToken(token), client.WithNamespace(namespace))
		require.NoError(t, err)
		return c
	}
	a, b, plain := of("a", "a"), of("b", "b"), of("default", "")
	for c, key := range map[*client.Client]string{a: "a~e", b: "b~e", plain: "e"} {
		put, created, err := c.PutEnvironment(ctx, execution.Environment{ID: "e", Image: "host", PoolSize: 2, Env: map[string]string{"OF": key}})
		require.NoError(t, err)
		require.True(t, created)
		require.Equal(t, key, put.Key())
	}
	exectest.AwaitWarm(t, served.Runners, 6)
	_, _, err := a.In("b").PutEnvironment(ctx, execution.Environment{ID: "x", Image: "host"})
	require.Equal(t, drover.Forbidden, code(err))
	_, _, err = a.PutEnvironment(ctx, execution.Environment{ID: "x", Namespace: "b", Image: "host"})
	require.Equal(t, drover.Forbidden, code(err))
	_, err = a.Environment(ctx, "b~e")
	require.Equal(t, drover.Forbidden, code(err))

	claimed := map[string]execution.Runner{}
	for name, c := range map[string]*client.Client{"a": a, "b": b} {
		r, err := c.Claim(ctx, execution.ClaimRequest{Environment: "e", Wait: time.Minute})
		require.NoError(t, err)
		require.Equal(t, name+"~e", r.Key())
		require.Equal(t, name+"~e-"+r.AllocID, r.ID)
		claimed[name] = r
		all, err := c.In("*").Runners(ctx, "")
		require.NoError(t, err)
		for _, x := range all {
			require.Equal(t, name, x.Namespace)
		}
		envs, err := c.In("*").Environments(ctx)
		require.NoError(t, err)
		require.Len(t, envs, 1)
		pool, err := c.Pool(ctx, "e")
		require.NoError(t, err)
		require.Equal(t, 1, pool.Claimed)
	}
	namedByKeys(t, served.Server.URL, a, claimed["a"])
	x, err := a.StartExecution(ctx, claimed["a"].ID, execution.Request{Command: "sleep", Spec: execution.Spec{Detach: -1}})
	require.NoError(t, err)
	_, err = a.Execution(ctx, x.ID)
	require.NoError(t, err)

	reachesNot(t, b, claimed["a"])
	_, err = b.Execution(ctx, x.ID)
	_, absent := b.Execution(ctx, "none")
	require.Equal(t, drover.NotFound, code(err))
	require.EqualError(t, err, fmt.Sprintf("execution %q not found", x.ID))
	require.EqualError(t, absent, `execution "none" not found`)
	require.Equal(t, drover.NotFound, code(b.Kill(ctx, x.ID)))
	_, err = b.SignedReceipt(ctx, x.ID)
	require.EqualError(t, err, fmt.Sprintf("execution %q not found", x.ID))
	_, err = b.Timeline(ctx, x.ID)
	require.EqualError(t, err, fmt.Sprintf("execution %q not found", x.ID))
	_, err = b.Observe(ctx, x.ID, execution.Offsets{})
	require.EqualError(t, err, fmt.Sprintf("execution %q not found", x.ID))
	_, err = b.Run(ctx, execution.RunRequest{Environment: "a~e", Request: execution.Request{Command: "id"}})
	require.Equal(t, drover.Forbidden, code(err))
	bodiesAgree(t, served.Server.URL)
	_, err = b.In("a").Run(ctx, execution.RunRequest{Environment: "e", Request: execution.Request{Command: "id"}})
	require.Equal(t, drover.Forbidden, code(err))

	require.NoError(t, a.DeleteEnvironment(ctx, "e"))
	_, err = a.Runner(ctx, claimed["a"].ID)
	require.Equal(t, drover.Gone, code(err))
	_, err = b.Runner(ctx, claimed["b"].ID)
	require.NoError(t, err, "the other tenant's environment of the same id stays")
	require.NoError(t, b.Release(ctx, claimed["b"].ID))
}

// plainAs is a client of no namespace.
func plainAs(t *testing.T, address, token string) *client.Client {
	t.Helper()
	c, err := client.New(address, client.WithToken(token))
	require.NoError(t, err)
	return c
}

// namedByKeys has tenant a, who claimed a runner of its environment e, name environments by their keys.
func namedByKeys(t *testing.T, address string, a *client.Client, claimed execution.Runner) {
	t.Helper()
	// Lists by id and by key, and what they tell of environments of others: nothing, also not whether they are there.
	for asked, there := range map[string]bool{"e": true, "a~e": true, "none": false} {
		all, err := a.In("*").Runners(t.Context(), asked)
		if asked == "a~e" {
			all, err = plainAs(t, address, "a").Runners(t.Context(), asked)
		}
		require.NoError(t, err, asked)
		require.Equal(t, there, slices.ContainsFunc(all, func(r execution.Runner) bool { return r.ID == claimed.ID }), asked)
		require.False(t, slices.ContainsFunc(all, func(r execution.Runner) bool { return r.Namespace != "a" }), asked)
	}
	for _, key := range []string{"b~e", "b~none", "default~e", "default~none"} {
		_, err := a.Runners(t.Context(), key)
		require.Equal(t, drover.Forbidden, code(err), key)
	}
	put, created, err := plainAs(t, address, "a").PutEnvironment(t.Context(), execution.Environment{ID: "a~named", Image: "host"})
	require.NoError(t, err, "by its key")
	require.True(t, created)
	require.Equal(t, "a~named", put.Key())
	result, err := plainAs(t, address, "a").Claim(t.Context(), execution.ClaimRequest{Environment: "a~e", Wait: time.Minute})
	require.NoError(t, err, "by its key")
	require.NoError(t, a.Release(t.Context(), result.ID))
}

// bodiesAgree has tenant b name another namespace in the body than in the query.
func bodiesAgree(t *testing.T, address string) {
	t.Helper()
	for _, path := range []string{"/v1/run?namespace=b", "/v1/runners?namespace=b"} { // rights are decided by the query: the body must agree
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+path, strings.NewReader(`{"environment": "a~e"}`))
		require.NoError(t, err)
		r.Header.Set("X-Drover-Token", "b")
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusBadRequest, answer.StatusCode, string(text))
		require.Contains(t, string(text), "say ?namespace=a")
	}
}

// reachesNot has tenant b try a runner of tenant a.
func reachesNot(t *testing.T, b *client.Client, of execution.Runner) {
	t.Helper()
	// What b may try. The runner's id with its own namespace in it is nobody's.
	forged := "b~e-" + of.AllocID
	for _, id := range []string{of.ID, forged, "e-" + of.AllocID} {
		want := drover.Forbidden
		if id == forged {
			want = drover.NotFound
		}
		_, err := b.Runner(t.Context(), id)
		require.Equal(t, want, code(err), id)
		require.Equal(t, want, code(b.Release(t.Context(), id)), id)
		_, err = b.StartExecution(t.Context(), id, execution.Request{Command: "id"})
		require.Equal(t, want, code(err), id)
	}
}
