package native_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// readers knows the token of somebody who may read nodes, and runners of the namespace team.
type readers struct{}

func (readers) Resolve(secret acl.Secret) (*rights.Caller, error) {
	rules, err := policy.Parse(`node { policy = "read" }
		namespace "team" { capabilities = ["read-runner"] }`)
	if err != nil || secret != "tenant" {
		return nil, errors.Join(err, drover.Errorf(drover.Forbidden, "Permission denied"))
	}
	return &rights.Caller{Rights: rights.Compile(rules), Token: &acl.Token{}}, nil
}

func (t readers) Refuses(secret acl.Secret) error {
	_, err := t.Resolve(secret)
	return err
}

// TestAttentionIsForItsCaller: what is judged is told as far as the caller may read it.
func TestAttentionIsForItsCaller(t *testing.T) {
	t.Parallel()
	var seen cluster.Viewer
	face := native.New(native.Config{}, native.Deps{
		Attention: func(_ context.Context, v cluster.Viewer) (cluster.Attention, error) {
			seen = v
			return cluster.Attention{State: cluster.Weak, Concerns: []cluster.Concern{{Code: cluster.NodeDown, Count: 2}}}, nil
		},
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	h := httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, Resolver: readers{}}, face)
	server := httptest.NewServer(described(t, h))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.WithToken("tenant"))
	require.NoError(t, err)
	a, err := c.Attention(t.Context())
	require.NoError(t, err)
	require.Equal(t, cluster.Weak, a.State)
	require.Equal(t, []cluster.Concern{{Code: cluster.NodeDown, Count: 2}}, a.Concerns)
	require.True(t, seen.Nodes && !seen.Servers && !seen.Fleet)
	require.True(t, seen.Runners("team") && seen.Runners("*") && !seen.Runners("default") && !seen.Jobs("team"))

	face.Attention = nil
	_, err = c.Attention(t.Context())
	require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
	c, err = client.New(server.URL, client.WithToken("wrong"))
	require.NoError(t, err)
	_, err = c.Attention(t.Context())
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	require.Equal(t, http.StatusForbidden, httpapi.Status(err))
}
