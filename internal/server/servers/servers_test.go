package servers

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	clusternoun "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/peercall"
)

// open opens a server that joins others by gossip and runs until the test ends.
func open(t *testing.T, name string, expect int, join ...string) *Servers {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	state := store.New()
	deps := Deps{Store: state, Clock: clock.Wall{}, IDs: id.Random{}, Logger: slog.New(slog.DiscardHandler)}
	folder := t.TempDir()
	serverID, err := ReadID(folder, deps.IDs)
	require.NoError(t, err)
	again, err := ReadID(folder, deps.IDs)
	require.NoError(t, err)
	require.Equal(t, serverID, again)
	s, err := Listen(in, Config{
		Self:      members.Self{ID: serverID, Name: name, Region: "global", RPCAddr: in.Addr().String(), Expect: expect},
		Folder:    folder,
		Gossip:    members.Config{Bind: "127.0.0.1:0", Pace: members.Local},
		Encrypt:   "MDEyMzQ1Njc4OWFiY2RlZg==",
		Join:      cluster.Config{RetryJoin: join},
		Autopilot: clusternoun.DefaultAutopilot(),
	}, deps)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	log, err := raftlog.Open(raftlog.Config{ID: serverID, Network: s.Network(), Join: true, DataDir: folder}, raftlog.Deps{
		FSM: fsm.New(state, nil), Log: deps.Logger, Clock: deps.Clock,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	require.NoError(t, s.Open(t.Context(), log))
	peercall.Handle(s.Mux(), "Test.Name", func(_ context.Context, from string, _ int) (string, error) { return name + " to " + from, nil })
	srv, done := newPeerServer(s), make(chan struct{})
	go func() { // ends when the server is closed
		defer close(done)
		_ = srv.Serve(s.Forwarded())
	}()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }() // ends with ctx
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ran)
		_ = srv.Close()
		<-done
	})
	return s
}

// until waits for what the servers come to.
func until(t *testing.T, s *Servers, what func() bool) {
	t.Helper()
	for {
		changed := s.Changed()
		if what() {
			return
		}
		clock.Await(t.Context(), clock.Wall{}, askAgain, changed)
		require.NoError(t, t.Context().Err())
	}
}

func TestThreeServersAreOne(t *testing.T) {
	t.Parallel()
	list := []*Servers{open(t, "a", 3)}
	list = append(list, open(t, "b", 3, list[0].Gossip().Address()), open(t, "c", 3, list[0].Gossip().Address()))
	for _, s := range list {
		until(t, s, func() bool {
			_, led := s.Leader()
			voters := 0
			for _, one := range s.List() {
				if one.Voter && one.Alive {
					voters++
				}
			}
			return led && voters == 3
		})
	}
	// Whoever proposes has the answer and the state.
	for i, s := range list {
		job := &drover.Job{ID: fmt.Sprint("j", i), Namespace: "default", Type: "batch", TaskGroups: []*drover.TaskGroup{{Name: "g"}}}
		index, result, err := s.Propose(t.Context(), &command.RegisterJob{Job: job, Time: 1})
		require.NoError(t, err)
		require.Equal(t, job.ID, result.(*drover.Job).ID)
		require.NotNil(t, s.deps.Store.Snapshot().Job("default", job.ID))
		require.GreaterOrEqual(t, s.deps.Store.Index(), index)
		_, _, err = s.Append(t.Context(), &command.DeregisterJob{Namespace: "default", ID: "nobody's"})
		require.Equal(t, drover.NotFound, drover.CodeOf(err), "the command's own error: %v", err)
	}
	// Who read consistently has what was acknowledged at another server before.
	for i, s := range list {
		job := &drover.Job{ID: fmt.Sprint("k", i), Namespace: "default", Type: "batch", TaskGroups: []*drover.TaskGroup{{Name: "g"}}}
		_, _, err := s.Propose(t.Context(), &command.RegisterJob{Job: job, Time: 1})
		require.NoError(t, err)
		for _, other := range list {
			require.NoError(t, other.Linearize(t.Context()))
			require.NotNil(t, other.deps.Store.Snapshot().Job("default", job.ID))
		}
	}
	require.NotEmpty(t, list[0].deps.Store.Snapshot().Cluster().ID)
	for _, s := range list {
		for _, other := range list {
			if s == other {
				continue
			}
			found, ok := s.ByID(other.Self().ID)
			require.True(t, ok)
			got, err := peercall.Call[string](t.Context(), s.Client(), found.Address, "Test.Name", 1)
			require.NoError(t, err)
			require.Equal(t, found.Name+" to "+s.Self().ID, got)
		}
	}
}

// Data of a server that was alone are a cluster's before anybody hears of it, and another cluster does not take it in.
func TestTwoClustersStayTwo(t *testing.T) {
	t.Parallel()
	one, two := open(t, "a", 1), open(t, "b", 1)
	for _, s := range []*Servers{one, two} {
		until(t, s, func() bool { return s.Gossip().Self().Cluster != "" })
	}
	_, err := two.Gossip().Join(t.Context(), []string{one.Gossip().Address()})
	require.Equal(t, drover.Conflict, drover.CodeOf(err), "%v", err)
	require.Len(t, one.List(), 1)
}

func TestAlone(t *testing.T) {
	t.Parallel()
	deps := Deps{Store: store.New(), Clock: clock.Wall{}, IDs: id.Random{}, Logger: slog.New(slog.DiscardHandler)}
	s := Alone(Config{
		Self: members.Self{ID: "local", Name: "a", Region: "global", RPCAddr: "127.0.0.1:1"}, Autopilot: clusternoun.DefaultAutopilot(),
	}, deps)
	t.Cleanup(s.Close)
	require.False(t, s.Clustered())
	_, led := s.Leader()
	require.False(t, led)
	waiting, stop := context.WithCancelCause(t.Context())
	linear := make(chan error, 1)
	go func() { linear <- s.Linearize(waiting) }() // ends with waiting
	stop(drover.Errorf(drover.Canceled, "nobody leads"))
	require.EqualError(t, <-linear, "nobody leads")
	log, err := raftlog.Open(raftlog.Config{}, raftlog.Deps{FSM: fsm.New(deps.Store, nil), Log: deps.Logger, Clock: deps.Clock})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	require.NoError(t, s.Open(t.Context(), log))
	require.NoError(t, log.WaitLeader(t.Context()))
	require.True(t, s.Leads())
	leader, led := s.Leader()
	require.True(t, led)
	require.Equal(t, Server{"local", "a", "global", "127.0.0.1:1", "", true, true}, leader)
	require.Equal(t, []Server{leader}, s.List())
	require.Equal(t, command.Newest, s.Members()[0].Writes)
	require.Equal(t, command.Newest, s.Version())
	_, err = s.Dial(t.Context(), "127.0.0.1:1")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	index, _, err := s.Propose(t.Context(), &command.Barrier{})
	require.NoError(t, err)
	require.Positive(t, index)
	require.NoError(t, s.Linearize(t.Context()))
	require.NoError(t, s.Reach(t.Context(), index))
	require.EqualError(t, s.Reach(waiting, index+1), "nobody leads")
}
