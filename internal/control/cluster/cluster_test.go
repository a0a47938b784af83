package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	clusternoun "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/autopilot"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/peer"
	"github.com/drover-project/drover/internal/wake"
)

// TestMain: memberlist's Shutdown does not wait for a probe of a member that does not answer, which ends by its own time limit.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

// one is a server: its real log, gossip and port.
type one struct {
	*Cluster
	name   string
	log    *raftlog.Log
	sick   atomic.Bool // it takes no writes
	gossip *members.Members
	port   *peer.Port
	stop   func()
}

// world is servers that find each other by name to ask for a status.
type world struct {
	t  *testing.T
	mu sync.Mutex
	// guarded by mu
	servers map[string]*one
	ids     map[*identity]bool
	hidden  map[string]bool
}

// identity stands for the replicated state: the leader sets it for all.
type identity struct {
	w       *world
	group   string // servers that are to be one cluster
	mu      sync.Mutex
	id      string // guarded by mu
	version int    // guarded by mu
	changed wake.Broadcast
}

func (i *identity) Version() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return max(1, i.version)
}

func (i *identity) Raise(_ context.Context, version int) error {
	return i.all(func(one *identity) { one.version = max(one.version, version) })
}

func (i *identity) Cluster() (string, <-chan struct{}) {
	changed := i.changed.C()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.id, changed
}

func (i *identity) SetCluster(_ context.Context, clusterID string) error {
	return i.all(func(one *identity) { one.id = clusterID })
}

// all changes the state of all servers of the group, as an entry of the log would.
func (i *identity) all(change func(*identity)) error {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	for other := range i.w.ids {
		if other.group == i.group {
			other.mu.Lock()
			change(other)
			other.mu.Unlock()
			other.changed.Send()
		}
	}
	return nil
}

type network struct {
	net.Listener
	port *peer.Port
}

func (n network) Dial(ctx context.Context, id, address string) (net.Conn, error) {
	return n.port.Dial(ctx, peer.Raft, address, peer.Identity{Server: id})
}

func newWorld(t *testing.T) *world {
	return &world{t: t, servers: map[string]*one{}, ids: map[*identity]bool{}}
}

func (w *world) start(group, name string, expect int, join ...*one) *one {
	t := w.t
	in, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	discard := slog.New(slog.DiscardHandler)
	s := &one{name: name}
	s.port = peer.Split(in, peer.Config{
		Self:  func() peer.Identity { return peer.Identity{Server: "id-" + name, Region: "global"} },
		Clock: clock.Wall{}, Log: discard, Secrets: func(context.Context, string) []string { return []string{"secret"} },
	})
	s.log, err = raftlog.Open(raftlog.Config{ID: "id-" + name, Network: network{s.port.Listener(peer.Raft), s.port}, Join: true},
		raftlog.Deps{FSM: fsm.New(store.New(), nil), Log: discard, Clock: clock.Wall{}})
	require.NoError(t, err)
	s.gossip, err = members.Open(members.Config{
		Self: members.Self{ID: "id-" + name, Name: name, Region: "global", RPCAddr: s.port.Addr().String(), Expect: expect},
		Bind: "127.0.0.1:0", Pace: members.Local,
	}, discard)
	require.NoError(t, err)
	known := &identity{w: w, group: group}
	var cfg Config
	for _, other := range join {
		cfg.RetryJoin = append(cfg.RetryJoin, other.gossip.Address())
	}
	var pilot *autopilot.Autopilot
	s.Cluster = New(cfg, Deps{
		Log: s.log, Gossip: s.gossip, Identity: known, Ask: w.ask, Progress: s.progress,
		Autopilot: func(term context.Context) { pilot.Run(term) },
		Clock:     clock.Wall{}, IDs: id.Random{}, Logger: discard,
	})
	pilot = autopilot.New(s.log, s.Watch(clusternoun.DefaultAutopilot))
	w.mu.Lock()
	w.servers[name], w.ids[known] = s, true
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var once sync.Once
	s.stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-done)
			require.NoError(t, s.gossip.Close())
			require.NoError(t, s.log.Close())
			require.NoError(t, s.port.Close())
		})
	}
	t.Cleanup(s.stop)
	return s
}

func (s *one) progress() raftlog.Progress {
	p := s.log.Progress()
	if s.sick.Load() {
		p.Sick = "its disk is full"
	}
	return p
}

// hide has a server answer nobody, or again.
func (w *world) hide(name string, hidden bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hidden = map[string]bool{name: hidden}
}

func (w *world) ask(_ context.Context, m members.Member) (Status, error) {
	w.mu.Lock()
	s := w.servers[m.Name]
	if w.hidden[m.Name] {
		s = nil
	}
	w.mu.Unlock()
	if s == nil {
		return Status{}, drover.Errorf(drover.Unavailable, "gone")
	}
	return s.Status(), nil
}

// voters are the names of those that vote, as the server sees them.
func (s *one) voters() string {
	peers, err := s.log.Peers()
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, p := range peers {
		if p.Voter {
			out = append(out, strings.TrimPrefix(p.ID, "id-"))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	require.Eventually(w.t, is, time.Minute, 20*time.Millisecond, what)
}

func (w *world) agree(want string, servers ...*one) {
	w.t.Helper()
	for _, s := range servers {
		w.until(fmt.Sprintf("%s sees %s", s.name, want), func() bool { return s.voters() == want })
	}
}

// Three servers that expect three become one cluster, whoever joins whom; one that waits is joined; one that leaves is gone.
func TestThreeServersBecomeOneCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.start("g", "c", 3)
	b := w.start("g", "b", 3, c)
	require.False(t, b.log.Begun())
	a := w.start("g", "a", 3, b)
	w.agree("a b c", a, b, c)
	w.until("the cluster has an id that all announce", func() bool {
		first := a.gossip.Self().Cluster
		return first != "" && b.gossip.Self().Cluster == first && c.gossip.Self().Cluster == first
	})
	d := w.start("g", "d", 0, a)
	w.until("d is a server", func() bool { peers, err := d.log.Peers(); return err == nil && len(peers) == 4 })
	require.Len(t, a.Servers(), 4)

	var leader *one
	w.until("there is a leader", func() bool {
		for _, s := range []*one{a, b, c} {
			if s.log.IsLeader() {
				leader = s
			}
		}
		return leader != nil
	})
	require.NoError(t, leader.Leave(t.Context()))
	leader.stop()
	rest := slices.DeleteFunc([]*one{a, b, c}, func(s *one) bool { return s == leader })
	w.until("the others go on without it", func() bool {
		return !strings.Contains(rest[0].voters(), leader.name) && (rest[0].log.IsLeader() || rest[1].log.IsLeader() || d.log.IsLeader())
	})
}

// A leader that takes no writes hands over to one that does, and not to one that is as sick.
func TestASickLeaderHandsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := []*one{w.start("g", "a", 3)}
	all = append(all, w.start("g", "b", 3, all[0]), w.start("g", "c", 3, all[0]))
	w.agree("a b c", all...)
	var leader *one
	w.until("there is a leader", func() bool {
		for _, s := range all {
			if s.log.IsLeader() {
				leader = s
			}
		}
		return leader != nil
	})
	rest := slices.DeleteFunc(slices.Clone(all), func(s *one) bool { return s == leader })
	rest[0].sick.Store(true)
	leader.sick.Store(true)
	w.until("the one that is well leads", rest[1].log.IsLeader)
}

// The version rises when every server reads it and says so, and not before; then a server that cannot read it is refused.
func TestTheVersionRises(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := []*one{w.start("g", "a", 3)}
	all = append(all, w.start("g", "b", 3, all[0]), w.start("g", "c", 3, all[0]))
	w.agree("a b c", all...)
	announce := func(s *one, highest int) {
		require.NoError(t, s.gossip.Announce(func(s *members.Self) { s.Protocol = members.Versions{Min: 1, Max: highest} }))
	}
	announce(all[0], 2)
	announce(all[1], 2)
	announce(all[2], 1)
	for _, s := range all[:2] {
		w.until("it says why not", func() bool { return s.raise(t.Context()) == "server c reads versions 1 to 1" })
		require.Equal(t, 1, s.deps.Identity.Version())
	}
	// What c announces is not enough: it stands still, or another program runs there by now.
	w.hide("c", true)
	announce(all[2], 2)
	for _, s := range all[:2] {
		w.until("c is asked", func() bool { return s.raise(t.Context()) == "server c does not say what it reads: gone" })
		require.Equal(t, 1, s.deps.Identity.Version())
	}
	w.hide("c", false)
	for _, s := range all {
		w.until("it rises", func() bool { return s.deps.Identity.Version() == 2 && s.gossip.Self().Writes == 2 })
	}

	d := w.start("g", "d", 0)
	_, err := d.gossip.Join(t.Context(), []string{all[0].gossip.Address()})
	require.ErrorContains(t, err, "writes version 2")
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.Len(t, all[0].gossip.List(), 3)
	announce(d, 2)
	_, err = d.gossip.Join(t.Context(), []string{all[0].gossip.Address()})
	require.NoError(t, err)
	w.until("d is a server", func() bool { peers, err := d.log.Peers(); return err == nil && len(peers) == 4 })

	// One that is started with an older program again, before gossip noticed, is unhealthy.
	health := all[0].Watch(clusternoun.DefaultAutopilot)
	progress := func() raftlog.Progress {
		p, err := health.Progress(t.Context(), autopilot.Known{Name: "b.global"})
		require.NoError(t, err)
		return p
	}
	require.Empty(t, progress().Sick)
	announce(all[1], 1)
	require.Equal(t, "its program reads versions 1 to 1 of the log, and the cluster writes 2", progress().Sick)
}

// A lone server that leads is joined, and two clusters do not become one.
func TestALoneServerIsJoinedAndClustersStayApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("g", "a", 1)
	w.until("it leads", a.log.IsLeader)
	w.until("its cluster has an id", func() bool { return a.gossip.Self().Cluster != "" })
	b := w.start("g", "b", 0, a)
	w.until("b is a server", func() bool { peers, err := b.log.Peers(); return err == nil && len(peers) == 2 })

	other := w.start("other", "o", 1)
	w.until("it leads", other.log.IsLeader)
	w.until("its cluster has an id", func() bool { return other.gossip.Self().Cluster != "" })
	_, err := other.gossip.Join(t.Context(), []string{a.gossip.Address()})
	require.Equal(t, drover.Conflict, drover.CodeOf(err), fmt.Sprint(err))
	peers, err := a.log.Peers()
	require.NoError(t, err)
	require.Len(t, peers, 2)
}

func TestNobodyToJoin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("g", "a", 0)
	lonely := New(Config{RetryJoin: []string{"127.0.0.1:1"}, RetryInterval: time.Millisecond, RetryMax: 2}, a.deps)
	err := lonely.join(t.Context())
	require.ErrorContains(t, err, "server_join: no server answered in 2 tries")

	lonely.cfg.RetryJoin = []string{a.gossip.Address()} // all servers may have the same list: each is in it
	require.ErrorContains(t, lonely.join(t.Context()), "only this server itself answers")
}

// A leader that stops hands over to a server that takes writes; who does not lead has nothing to hand over.
func TestALeaderThatStopsHandsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("g", "a", 3)
	b := w.start("g", "b", 3, a)
	all := []*one{a, b, w.start("g", "c", 3, a)}
	w.agree("a b c", all...)
	leads := func(of ...*one) (leader *one) {
		w.until("there is a leader", func() bool {
			i := slices.IndexFunc(of, func(s *one) bool { return s.log.IsLeader() })
			if i >= 0 {
				leader = of[i]
			}
			return leader != nil
		})
		return leader
	}
	first := leads(all...)
	rest := slices.DeleteFunc(slices.Clone(all), func(s *one) bool { return s == first })
	rest[0].sick.Store(true)
	first.HandOver(t.Context())
	require.False(t, first.log.IsLeader())
	require.Equal(t, rest[1], leads(rest...), "the one that takes writes")
	first.HandOver(t.Context())
	require.True(t, rest[1].log.IsLeader())
}
