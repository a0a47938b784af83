package supervisor

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// countingGroups makes groups that say that the kernel killed for memory, and which are there until they are removed.
type countingGroups struct{ removed atomic.Bool }

func (g *countingGroups) Execution(string, drover.Limits) (Group, error) { return g, nil }
func (g *countingGroups) Find(string) Group {
	if g.removed.Load() {
		return nil
	}
	return g
}
func (g *countingGroups) Files() GroupFiles { return GroupFiles{} }
func (g *countingGroups) OOMKills() int     { return 1 }
func (g *countingGroups) Kill() error       { return nil }
func (g *countingGroups) Stats() (GroupStats, error) {
	return GroupStats{UserCPU: time.Hour, PeakMemory: 7}, nil
}

func (g *countingGroups) Remove(context.Context) error {
	g.removed.Store(true)
	return nil
}

// What only the group knows is in a receipt however often it has to be fetched. It is there in whichever way the
// reader before went: the agent was killed, or could not hand it on.
func TestAReceiptFetchedAgainSaysTheSame(t *testing.T) {
	t.Parallel()
	_, stateDir := launch(t, nil)
	ctx := t.Context()
	groups := &countingGroups{}
	connected := func() *Client {
		o := options()
		o.Groups = groups
		c, err := Connect(ctx, SocketPath(stateDir), o)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	told := func(s execution.Session) {
		r := drain(t, s)
		require.Equal(t, execution.CauseOOM, r.Cause)
		require.Equal(t, time.Hour, r.UserCPU)
		require.Equal(t, int64(7), r.PeakMemory)
	}
	c := connected()
	spec := sh("kill -9 $$")
	spec.ID = "x"
	s, err := c.StartExecution(ctx, spec)
	require.NoError(t, err)
	told(s)
	s.(interface{ Lost() }).Lost()
	require.False(t, groups.removed.Load(), "nobody has the receipt yet")
	s, err = c.AttachExecution(ctx, "x", execution.Offsets{})
	require.NoError(t, err)
	told(s)
	require.NoError(t, c.Close()) // as a killed agent does
	c = connected()
	s, err = c.AttachExecution(ctx, "x", execution.Offsets{})
	require.NoError(t, err)
	told(s)
	require.NoError(t, s.Close())
	require.True(t, groups.removed.Load())
	require.Empty(t, c.groups)
	require.Empty(t, c.stale)
}

// closingGroups counts which of its groups' files are open.
type closingGroups struct {
	countingGroups
	open  atomic.Int32
	spent atomic.Bool
}

func (g *closingGroups) Execution(string, drover.Limits) (Group, error) {
	g.open.Add(1)
	return &closingGroup{Group: &g.countingGroups, of: g}, nil
}

type closingGroup struct {
	Group
	of *closingGroups
}

func (g *closingGroup) Close()    { g.of.open.Add(-1) }
func (g *closingGroup) NotAgain() { g.of.spent.Store(true) }

// withClosingGroups launches a supervisor, and connects a client with groups to it.
func withClosingGroups(t *testing.T) (*Client, *closingGroups) {
	t.Helper()
	_, stateDir := launch(t, nil)
	groups, o := &closingGroups{}, options()
	o.Groups = groups
	c, err := Connect(t.Context(), SocketPath(stateDir), o)
	require.NoError(t, err)
	return c, groups
}

// An ended runner's sessions, and with them its client, are kept for as long as the receipts are.
func TestGroupsOfALostSupervisorAreClosed(t *testing.T) {
	t.Parallel()
	c, groups := withClosingGroups(t)
	followed, abandoned := sh("sleep 1000"), sh("sleep 1000")
	followed.ID, abandoned.ID, abandoned.Detach = "followed", "abandoned", -1
	s, err := c.StartExecution(t.Context(), followed)
	require.NoError(t, err)
	left, err := c.StartExecution(t.Context(), abandoned)
	require.NoError(t, err)
	require.NoError(t, left.Close())
	require.EqualValues(t, 2, groups.open.Load())
	require.NoError(t, c.Close()) // as if the supervisor had ended
	require.Zero(t, groups.open.Load())
	require.NoError(t, s.Close())
}

// It may begin in its group only after we took it for ended, and is killed there with whatever is in it.
func TestAGroupThatNobodyWaitedForServesNoOther(t *testing.T) {
	t.Parallel()
	c, groups := withClosingGroups(t)
	defer c.Close()
	g, err := groups.Execution("vanished", drover.Limits{})
	require.NoError(t, err)
	c.mu.Lock()
	c.stale["vanished"] = g // as when its start was given up before the supervisor had begun it
	c.mu.Unlock()
	c.sweep(t.Context())
	require.True(t, groups.removed.Load())
	require.True(t, groups.spent.Load())
}
