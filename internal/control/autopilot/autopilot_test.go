package autopilot

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	library "github.com/hashicorp/raft-autopilot"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/control/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is raftlog.Network over TCP, without a proof of who is who.
type network struct{ net.Listener }

func (network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// servers opens logs of which the first leads; the others wait to be added.
func servers(t *testing.T, n int) (logs []*raftlog.Log) {
	t.Helper()
	for i := range n {
		in, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		l, err := raftlog.Open(raftlog.Config{ID: fmt.Sprintf("s%d", i), Network: network{in}, Join: i > 0},
			raftlog.Deps{FSM: fsm.New(store.New(), nil), Log: slog.New(slog.DiscardHandler), Clock: clock.Wall{}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		logs = append(logs, l)
	}
	require.NoError(t, logs[0].WaitLeader(t.Context()))
	return logs
}

// gossip is what the leader hears of the servers.
type gossip struct {
	mu      sync.Mutex
	servers map[string]Known // guarded by mu
	sick    string           // guarded by mu: the id of a server that takes no writes
	back    string           // guarded by mu: the id of one that answers though gossip says it failed
	asked   int              // guarded by mu: how often that was asked
	logs    map[string]*raftlog.Log
}

func (g *gossip) set(id, status string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.servers[id]
	k.ID, k.Name, k.Address, k.Status = id, id, g.logs[id].Address(), status
	g.servers[id] = k
}

func (g *gossip) list() (out []Known) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range g.servers {
		out = append(out, k)
	}
	return out
}

func (g *gossip) deps() Deps {
	cfg := cluster.DefaultAutopilot()
	cfg.ServerStabilizationTime, cfg.LastContactThreshold = time.Millisecond, 10*time.Second
	return Deps{
		Config: func() cluster.Autopilot { return cfg }, Servers: g.list,
		Progress: func(_ context.Context, s Known) (raftlog.Progress, error) {
			g.mu.Lock()
			status, sick, back := g.servers[s.ID].Status, g.sick == s.ID, g.back == s.ID
			if back {
				g.asked++
			}
			g.mu.Unlock()
			if status != "alive" && !back {
				return raftlog.Progress{}, drover.Errorf(drover.Unavailable, "gone")
			}
			progress := g.logs[s.ID].Progress()
			if sick {
				progress.Sick = "its disk is full"
			}
			return progress, nil
		},
		Remove: func(s Known) { g.set(s.ID, "left") },
	}
}

// Servers that join vote once they are stable, and one that failed goes while the others are a quorum.
func TestAutopilot(t *testing.T) {
	t.Parallel()
	logs := servers(t, 4)
	g := &gossip{servers: map[string]Known{}, logs: map[string]*raftlog.Log{}}
	for _, l := range logs {
		g.logs[l.ID()] = l
		g.set(l.ID(), "alive")
	}
	a := New(logs[0], g.deps())
	a.asks, a.acts = 10*time.Millisecond, 20*time.Millisecond
	require.Equal(t, Health{}, a.Health(), "nobody judged yet")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })

	for _, l := range logs[1:] {
		require.NoError(t, logs[0].AddNonvoter(t.Context(), l.ID(), l.Address()))
	}
	voters := func(want ...string) func() bool {
		return func() bool {
			peers, err := logs[0].Peers()
			require.NoError(t, err)
			var got []string
			for _, p := range peers {
				if p.Voter {
					got = append(got, p.ID)
				}
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		}
	}
	require.Eventually(t, voters("s0", "s1", "s2", "s3"), time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { h := a.Health(); return h.Healthy && h.FailureTolerance == 1 }, time.Minute, 10*time.Millisecond)
	h := a.Health()
	require.Len(t, h.Servers, 4)
	require.True(t, h.Servers[0].Leader && h.Servers[0].Voter && h.Servers[0].Healthy)
	require.False(t, h.Servers[0].StableSince.IsZero())

	becomes := func(sick string, healthy bool) {
		g.mu.Lock()
		g.sick = sick
		g.mu.Unlock()
		require.Eventually(t, func() bool { return a.Health().Healthy == healthy }, time.Minute, 10*time.Millisecond)
	}
	becomes("s2", false)
	require.False(t, a.Health().Servers[2].Healthy)
	require.Equal(t, "its disk is full", a.Health().Servers[2].Sick)
	require.GreaterOrEqual(t, a.Health().Servers[2].LastContact, time.Duration(0), "it hears of the leader")
	becomes("", true)

	g.mu.Lock()
	g.back = "s3" // it was cut off, and gossip does not know yet that it is there again
	g.mu.Unlock()
	g.set("s3", "failed")
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.asked > 50 // each ten milliseconds, and before it would be taken out each twenty
	}, time.Minute, 10*time.Millisecond)
	require.True(t, voters("s0", "s1", "s2", "s3")())
	require.Equal(t, "failed", g.servers["s3"].Status, "it is not taken out")
	g.mu.Lock()
	g.back = ""
	g.mu.Unlock()
	require.NoError(t, logs[3].Close())
	require.Eventually(t, voters("s0", "s1", "s2"), time.Minute, 10*time.Millisecond)
	cancel()
	<-done
	require.Equal(t, Health{}, a.Health())
}

// Whom a term found failed the next one judges anew: the servers may be others, and too few without it.
func TestATermForgetsWhomTheOneBeforeWouldRemove(t *testing.T) {
	t.Parallel()
	logs := servers(t, 1)
	g := &gossip{servers: map[string]Known{}, logs: map[string]*raftlog.Log{"s0": logs[0]}}
	g.set("s0", "alive")
	a := New(logs[0], g.deps())
	a.removes <- Known{ID: "s1"}
	over, end := context.WithCancel(t.Context())
	end()
	a.Run(over)
	require.Empty(t, a.removes)
}

// Whatever the servers are like, applying what the promoter wants ends. Then every zone that has a healthy server has one
// healthy voter, no read replica votes, and servers without a zone vote if they are healthy.
func TestWhoVotes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		known := map[raft.ServerID]Known{}
		s := &library.State{Servers: map[raft.ServerID]*library.ServerState{}}
		zones := rapid.Bool().Draw(t, "zones")
		for i := range rapid.IntRange(1, 7).Draw(t, "servers") {
			id := raft.ServerID(rune('a' + i))
			known[id] = Known{
				ID: string(id), ReadReplica: rapid.IntRange(0, 4).Draw(t, "replica") == 0,
				Zone: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "zone"),
			}
			one := &library.ServerState{State: library.RaftNonVoter}
			one.Health.Healthy = rapid.IntRange(0, 3).Draw(t, "healthy") > 0
			one.Health.StableSince = time.Now().Add(-time.Hour)
			if rapid.Bool().Draw(t, "voter") {
				one.State = library.RaftVoter
			}
			s.Servers[id] = one
		}
		p := &promoter{servers: func() map[raft.ServerID]Known { return known }}
		cfg := &library.Config{Ext: zones}
		for round := 0; ; round++ {
			require.Less(t, round, 20, "it does not come to rest")
			c := p.CalculatePromotionsAndDemotions(cfg, s)
			require.Empty(t, c.Leader)
			if len(c.Promotions)+len(c.Demotions) == 0 {
				break
			}
			for _, id := range c.Promotions {
				require.True(t, s.Servers[id].Health.Healthy)
				require.NotEqual(t, library.RaftVoter, s.Servers[id].State)
				s.Servers[id].State = library.RaftVoter
			}
			if len(c.Promotions) > 0 {
				continue // the library does one of both in a round
			}
			for _, id := range c.Demotions {
				s.Servers[id].State = library.RaftNonVoter
			}
		}
		healthy, voting := map[string]int{}, map[string]int{}
		for id, one := range s.Servers {
			k, votes := known[id], one.State == library.RaftVoter
			switch {
			case k.ReadReplica:
				require.False(t, votes)
			case !zones || k.Zone == "":
				require.True(t, votes || !one.Health.Healthy)
			default:
				if one.Health.Healthy {
					healthy[k.Zone]++
					if votes {
						voting[k.Zone]++
					}
				}
			}
		}
		for zone := range healthy {
			require.Equal(t, 1, voting[zone], zone)
		}
	})
}
