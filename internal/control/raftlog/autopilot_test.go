package raftlog

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

// gossip is what the leader hears of the servers.
type gossip struct {
	mu      sync.Mutex
	servers map[string]Known // guarded by mu
	logs    map[string]*Log
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

func (g *gossip) deps() AutopilotDeps {
	cfg := DefaultAutopilot()
	cfg.ServerStabilizationTime, cfg.LastContactThreshold = time.Millisecond, 10*time.Second
	return AutopilotDeps{
		Config: func() AutopilotConfig { return cfg }, Servers: g.list,
		Progress: func(_ context.Context, s Known) (Progress, error) {
			g.mu.Lock()
			status := g.servers[s.ID].Status
			g.mu.Unlock()
			if status != "alive" {
				return Progress{}, drover.Errorf(drover.Unavailable, "gone")
			}
			return g.logs[s.ID].Progress(), nil
		},
		Remove: func(s Known) { g.set(s.ID, "left") },
	}
}

// Servers that join vote once they are stable, and one that failed goes while the others are a quorum.
func TestAutopilot(t *testing.T) {
	t.Parallel()
	logs, _ := cluster(t, 4)
	g := &gossip{servers: map[string]Known{}, logs: map[string]*Log{}}
	for _, l := range logs {
		g.logs[l.cfg.ID] = l
		g.set(l.cfg.ID, "alive")
	}
	require.Equal(t, Health{}, logs[0].Health(), "nobody judged yet")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		runAutopilot(ctx, logs[0], g.deps(), 10*time.Millisecond, 20*time.Millisecond)
	}()
	t.Cleanup(func() { cancel(); <-done })

	for _, l := range logs[1:] {
		require.NoError(t, logs[0].AddNonvoter(t.Context(), l.cfg.ID, l.Address()))
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
	require.Eventually(t, func() bool { h := logs[0].Health(); return h.Healthy && h.FailureTolerance == 1 }, time.Minute, 10*time.Millisecond)
	h := logs[0].Health()
	require.Len(t, h.Servers, 4)
	require.True(t, h.Servers[0].Leader && h.Servers[0].Voter && h.Servers[0].Healthy)
	require.False(t, h.Servers[0].StableSince.IsZero())

	require.NoError(t, logs[3].Close())
	g.set("s3", "failed")
	require.Eventually(t, voters("s0", "s1", "s2"), time.Minute, 10*time.Millisecond)
	cancel()
	<-done
	require.Equal(t, Health{}, logs[0].Health())
}

// Whatever the servers are like, applying what the promoter wants ends, and then every zone that has a healthy server has one
// healthy voter, no read replica votes, and who has no zone votes if it is healthy.
func TestWhoVotes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		known := map[raft.ServerID]Known{}
		s := &autopilot.State{Servers: map[raft.ServerID]*autopilot.ServerState{}}
		zones := rapid.Bool().Draw(t, "zones")
		for i := range rapid.IntRange(1, 7).Draw(t, "servers") {
			id := raft.ServerID(rune('a' + i))
			known[id] = Known{
				ID: string(id), ReadReplica: rapid.IntRange(0, 4).Draw(t, "replica") == 0, Zone: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "zone"),
			}
			one := &autopilot.ServerState{State: autopilot.RaftNonVoter}
			one.Health.Healthy = rapid.IntRange(0, 3).Draw(t, "healthy") > 0
			one.Health.StableSince = time.Now().Add(-time.Hour)
			if rapid.Bool().Draw(t, "voter") {
				one.State = autopilot.RaftVoter
			}
			s.Servers[id] = one
		}
		p := &promoter{servers: func() map[raft.ServerID]Known { return known }}
		cfg := &autopilot.Config{Ext: zones}
		for round := 0; ; round++ {
			require.Less(t, round, 20, "it does not come to rest")
			c := p.CalculatePromotionsAndDemotions(cfg, s)
			require.Empty(t, c.Leader)
			if len(c.Promotions)+len(c.Demotions) == 0 {
				break
			}
			for _, id := range c.Promotions {
				require.True(t, s.Servers[id].Health.Healthy)
				require.NotEqual(t, autopilot.RaftVoter, s.Servers[id].State)
				s.Servers[id].State = autopilot.RaftVoter
			}
			if len(c.Promotions) > 0 {
				continue // the library does one of both in a round
			}
			for _, id := range c.Demotions {
				s.Servers[id].State = autopilot.RaftNonVoter
			}
		}
		healthy, voting := map[string]int{}, map[string]int{}
		for id, one := range s.Servers {
			k, votes := known[id], one.State == autopilot.RaftVoter
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
