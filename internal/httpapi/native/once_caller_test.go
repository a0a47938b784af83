package native_test

import (
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
	"github.com/drover-project/drover/internal/rights"
)

// tenants resolves every secret to a caller of its own, who may do everything.
type tenants struct{}

func (tenants) Resolve(secret acl.Secret) (*rights.Caller, error) {
	return &rights.Caller{
		Token: &acl.Token{AccessorID: "of " + string(secret), Type: acl.ManagementToken}, Rights: rights.Management(),
	}, nil
}

// Two tenants who use the same key get runners, executions and answers of their own, whatever the bodies.
func TestAKeyIsItsCallers(t *testing.T) {
	t.Parallel()
	served := facetest.Serve(t, httpapi.Config{Resolver: tenants{}}, func(s *facetest.World) httpapi.Face {
		return native.New(native.Config{}, native.Deps{
			Environments: s.Runners, Runners: s.Runners, Executions: s.Executions, Clock: clock.Wall{}, Log: s.Log,
		})
	}, nil)
	of := func(token string) *client.Client {
		c, err := client.New(served.Server.URL, client.WithToken(token))
		require.NoError(t, err)
		return c
	}
	one, other := of("one"), of("other")
	_, _, err := one.PutEnvironment(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 3})
	require.NoError(t, err)
	exectest.AwaitWarm(t, served.Runners, 3)
	ctx := client.WithIdempotencyKey(t.Context(), "key")

	r, err := one.Claim(ctx, claimE(nil))
	require.NoError(t, err)
	theirs, err := other.Claim(ctx, claimE(nil))
	require.NoError(t, err)
	require.NotEqual(t, r.ID, theirs.ID)
	for c, want := range map[*client.Client]string{one: r.ID, other: theirs.ID} {
		again, err := c.Claim(ctx, claimE(nil))
		require.NoError(t, err)
		require.Equal(t, want, again.ID)
	}
	_, err = one.Claim(ctx, execution.ClaimRequest{Environment: "e", Wait: time.Second})
	require.Equal(t, drover.Conflict, code(err), "its own key for another request")
	_, err = of("third").Claim(ctx, execution.ClaimRequest{Environment: "e", Wait: time.Second, Labels: map[string]string{"a": "b"}})
	require.NoError(t, err, "a key that others used for another request tells nothing of them")
}
