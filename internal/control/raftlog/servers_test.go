package raftlog

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
)

// cluster opens servers of which the first leads; the others wait to be added.
func cluster(t *testing.T, n int) ([]*Log, []*fsm.FSM) {
	t.Helper()
	logs, fsms := make([]*Log, n), make([]*fsm.FSM, n)
	for i := range logs {
		d := deps()
		l, err := Open(Config{ID: fmt.Sprintf("s%d", i), Network: network(t), Join: i > 0, DataDir: t.TempDir()}, d)
		require.NoError(t, err)
		logs[i], fsms[i] = l, d.FSM
		t.Cleanup(func() { require.NoError(t, l.Close()) })
	}
	require.NoError(t, logs[0].WaitLeader(t.Context()))
	return logs, fsms
}

func TestALoneServerIsJoined(t *testing.T) {
	t.Parallel()
	logs, fsms := cluster(t, 3)
	before, _, err := logs[0].Propose(t.Context(), register("before"))
	require.NoError(t, err)
	require.EqualValues(t, -1, logs[1].LastContact(), "nobody spoke to it")

	require.NoError(t, logs[0].AddNonvoter(t.Context(), "s1", logs[1].Address()))
	awaitIndex(t, fsms[1:2], before)
	require.Equal(t, []string{"s0 leader voter", "s1"}, roles(t, logs[0]))
	require.Error(t, logs[0].Transfer(t.Context(), "s1"), "it has no vote")
	require.NoError(t, logs[0].AddVoter(t.Context(), "s1", logs[1].Address()))
	require.NoError(t, logs[0].AddVoter(t.Context(), "s2", logs[2].Address()))
	require.NoError(t, logs[0].DemoteVoter(t.Context(), "s1"))
	require.Equal(t, []string{"s0 leader voter", "s1", "s2 voter"}, roles(t, logs[0]))

	index, err := logs[0].ReadIndex(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, index, before)
	require.Zero(t, logs[0].LastContact())
	require.GreaterOrEqual(t, logs[2].LastContact(), time.Duration(0))
	_, err = logs[2].ReadIndex(t.Context())
	require.Equal(t, drover.NotLeader, drover.CodeOf(err))
	require.Equal(t, drover.NotLeader, drover.CodeOf(logs[2].RemoveServer(t.Context(), "s1")))

	require.NoError(t, logs[0].Transfer(t.Context(), "s2"))
	require.NoError(t, logs[2].WaitLeader(t.Context()))
	require.NoError(t, logs[2].RemoveServer(t.Context(), "s1"))
	require.Equal(t, []string{"s0 voter", "s2 leader voter"}, roles(t, logs[2]))
	require.NoError(t, logs[2].Transfer(t.Context(), ""))
	require.NoError(t, logs[0].WaitLeader(t.Context()))
}

// TestAnEmptyServerDoesNotVoteForAnother: a server that lost its disk comes back under a new id, where the log still lists the former.
// It would vote a second time in terms in which that one had voted.
func TestAnEmptyServerDoesNotVoteForAnother(t *testing.T) {
	t.Parallel()
	logs, fsms := cluster(t, 3)
	require.NoError(t, logs[0].AddVoter(t.Context(), "s1", logs[1].Address()))
	require.NoError(t, logs[0].AddVoter(t.Context(), "s2", logs[2].Address()))
	last, _, err := logs[0].Propose(t.Context(), register("before"))
	require.NoError(t, err)
	awaitIndex(t, fsms, last)
	vote := func(l *Log) (granted bool) {
		answers := make(chan raft.RPCResponse, 1)
		asked := raft.RPC{Command: &raft.RequestVoteRequest{Term: 1}, RespChan: answers}
		if l.transport.abstains(asked) {
			return (<-answers).Response.(*raft.RequestVoteResponse).Granted
		}
		return true // raft itself decides
	}
	require.True(t, vote(logs[2]))

	address := logs[2].Address()
	require.NoError(t, logs[2].Close())
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	d := deps()
	empty, err := Open(Config{ID: "new", Network: tcp{listener}, Join: true, DataDir: t.TempDir()}, d)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, empty.Close()) })
	require.False(t, vote(empty), "it knows nothing yet")
	last, _, err = logs[0].Propose(t.Context(), register("after"))
	require.NoError(t, err)
	awaitIndex(t, []*fsm.FSM{d.FSM}, last) // the leader takes it for s2
	require.False(t, vote(empty), "the log lists another")

	require.NoError(t, logs[0].RemoveServer(t.Context(), "s2"))
	require.NoError(t, logs[0].AddNonvoter(t.Context(), "new", address))
	last, _, err = logs[0].Propose(t.Context(), register("known"))
	require.NoError(t, err)
	awaitIndex(t, []*fsm.FSM{d.FSM}, last)
	require.True(t, vote(empty))
}

// asking is a Network that dials no other server than those whose ids it knows, by their addresses.
type asking struct {
	tcp
	known map[string]string // ids by address
}

func (a asking) Dial(ctx context.Context, id, address string) (net.Conn, error) {
	if a.known[address] != id {
		return nil, drover.Errorf(drover.Unavailable, "server %q is not at %s", id, address)
	}
	return a.tcp.Dial(ctx, id, address)
}

// TestWhoIsDialled: the network is told which server is meant, also when another one had its address before: what is sent to the one
// never reaches the other.
func TestWhoIsDialled(t *testing.T) {
	t.Parallel()
	first, _ := network(t).(tcp)
	logs, known := make([]*Log, 3), map[string]string{}
	for i := range logs {
		n, _ := network(t).(tcp)
		if i == 0 {
			n = first
		}
		l, err := Open(Config{ID: fmt.Sprintf("s%d", i), Network: asking{n, known}, Join: i > 0}, deps())
		require.NoError(t, err)
		logs[i] = l
		t.Cleanup(func() { require.NoError(t, l.Close()) })
	}
	for _, l := range logs[:2] {
		known[l.Address()] = l.ID()
	}
	require.NoError(t, logs[0].WaitLeader(t.Context()))
	require.NoError(t, logs[0].AddVoter(t.Context(), "s1", logs[1].Address()), "it takes its entry")
	require.NoError(t, logs[0].AddNonvoter(t.Context(), "else", logs[2].Address()))
	for range 3 {
		_, _, err := logs[0].Propose(t.Context(), register("j"))
		require.NoError(t, err)
	}
	require.Zero(t, logs[2].Stats().LastIndex, "it is s2, and another one is meant")
	require.NoError(t, logs[0].Transfer(t.Context(), "s1"))
	require.NoError(t, logs[1].WaitLeader(t.Context()))
}

// roles are the servers as "id [leader] [voter]", in the order of the configuration.
func roles(t *testing.T, l *Log) (out []string) {
	t.Helper()
	peers, err := l.Peers()
	require.NoError(t, err)
	for _, p := range peers {
		text := p.ID
		if p.Leader {
			text += " leader"
		}
		if p.Voter {
			text += " voter"
		}
		out = append(out, text)
	}
	return out
}

// A leader that reaches nobody does not answer reads that must see everything.
func TestAMinorityVerifiesNothing(t *testing.T) {
	t.Parallel()
	logs, _ := cluster(t, 3)
	for _, l := range logs[1:] {
		require.NoError(t, logs[0].AddVoter(t.Context(), l.cfg.ID, l.Address()))
	}
	require.NoError(t, logs[1].Close())
	require.NoError(t, logs[2].Close())
	_, err := logs[0].ReadIndex(t.Context())
	require.Error(t, err)
	require.Contains(t, []drover.Code{drover.NotLeader, drover.Unavailable}, drover.CodeOf(err))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, _, err = logs[0].Propose(ctx, register("x"))
	require.Error(t, err)
}

// A data folder of a server that was alone, under the id that all of those had, becomes that of a server of its own that
// others can join. Nothing is lost, and it happens once.
func TestALoneFolderGetsAnId(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := start(t, Config{DataDir: dir})
	for i := range 20 {
		_, _, err := l.Propose(t.Context(), register(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.NoError(t, l.Snapshot())
	_, _, err := l.Propose(t.Context(), register("last"))
	require.NoError(t, err)
	require.NoError(t, l.Close())

	me := Config{ID: "me", DataDir: dir}
	_, err = Open(me, deps())
	require.ErrorContains(t, err, "belongs to a server that was alone")
	for range 2 {
		d := deps()
		d.Fresh = func() *fsm.FSM { return fsm.New(store.New(), nil) }
		cfg := me
		cfg.Network = network(t) // another address each time
		l, err := Open(cfg, d)
		require.NoError(t, err)
		require.NoError(t, l.WaitLeader(t.Context()))
		require.Equal(t, []string{"me leader voter"}, roles(t, l))
		require.NotNil(t, d.FSM.Store().Snapshot().Job("default", "0"))
		require.NotNil(t, d.FSM.Store().Snapshot().Job("default", "last"))
		require.NoError(t, l.AddVoter(t.Context(), "me", l.Address()), "a lone server says where it is now")
		require.NoError(t, l.Close())
	}
	_, err = Open(Config{ID: "another", DataDir: dir}, deps())
	require.ErrorContains(t, err, "belongs to server me and not to another")
	_, err = Open(Config{DataDir: dir}, deps())
	require.ErrorContains(t, err, "belongs to server me and not to local")
}

func TestNetworksThatCannotBe(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{
		"needs a network":              {ID: "a", Join: true},
		"needs an id of its own":       {Network: network(t)},
		"either join a cluster":        {ID: "a", Network: network(t), Join: true, Peers: []Peer{{ID: "a"}}},
		"resolving the raft advertise": {ID: "a", Network: network(t), Advertise: "nowhere"},
	} {
		_, err := Open(cfg, deps())
		require.ErrorContains(t, err, want)
	}
}
