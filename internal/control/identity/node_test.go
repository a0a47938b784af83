package identity

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
)

// TestNodes: a node gets an identity of its own, which lives as long as its pool says; a machine is introduced to a pool that is there.
func TestNodes(t *testing.T) {
	t.Parallel()
	st := store.New()
	issuer := New(Deps{Signer: &signer{}, Store: st, Clock: clock.Wall{}, IDs: id.NewSeeded(1), Region: "global"})
	ask := []exchange.IdentityRequest{{}}
	got, unknown, err := issuer.Workloads(t.Context(), "n1", ask)
	require.NoError(t, err)
	require.True(t, unknown, "this server's state may be old")
	require.Contains(t, got[0].Refused, "register first")

	tx := st.Begin(st.Index() + 1)
	tx.PutNodePool(&drover.NodePool{Name: "gpu", NodeIdentityTTL: "2h"})
	tx.PutNodePool(&drover.NodePool{Name: "default"})
	tx.PutNode(&drover.Node{ID: "n1", NodePool: "gpu", Datacenter: "dc1"})
	tx.PutNode(&drover.Node{ID: "n2", NodePool: "default", Datacenter: "dc1"})
	tx.Commit()
	for node, ttl := range map[string]time.Duration{"n1": 2 * time.Hour, "n2": NodeTTL} {
		got, unknown, err = issuer.Workloads(t.Context(), node, ask)
		require.NoError(t, err)
		require.False(t, unknown)
		require.Equal(t, ttl, got[0].Expires.Sub(got[0].Made))
		var c claims.Claims
		require.NoError(t, json.Unmarshal([]byte(got[0].Token), &c))
		require.True(t, c.IsNode())
		require.Equal(t, node, c.NodeID)
	}

	text, err := issuer.Introduction(t.Context(), "worker", "gpu", time.Minute)
	require.NoError(t, err)
	var c claims.Claims
	require.NoError(t, json.Unmarshal([]byte(text), &c))
	require.True(t, c.IsIntroduction())
	require.Equal(t, []string{"worker", "gpu"}, []string{c.NodeName, c.NodePool})
	_, err = issuer.Introduction(t.Context(), "", "none", time.Minute)
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	_, err = issuer.Introduction(t.Context(), "", drover.AllNodePool, time.Minute)
	require.Equal(t, drover.NotFound, drover.CodeOf(err), "no node is in it")
}
