package keeper

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/demand"
	"github.com/drover-project/drover/internal/fleet/meters"
	"github.com/drover-project/drover/internal/fleet/office"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a fake state, log and set of nodes. What the log is given is in the state at once.
type world struct {
	mu       sync.Mutex
	identity *fleet.Identity
	pools    map[string]*fleet.Pool
	rows     map[string]*fleet.InstanceRecord
	memory   map[string]*fleet.Memory
	nodes    map[string]*drover.Node
	index    uint64
	changed  chan struct{}
	refuses  int // so many writes
	follower bool
	older    bool // a server of the cluster has an older program
	steered  []string
	costs    []*fleet.Cost
}

func newWorld() *world {
	return &world{
		pools: map[string]*fleet.Pool{}, rows: map[string]*fleet.InstanceRecord{}, memory: map[string]*fleet.Memory{},
		nodes: map[string]*drover.Node{}, changed: make(chan struct{}),
	}
}

func (w *world) FleetIdentity() *fleet.Identity {
	return locked(w, func() *fleet.Identity { return w.identity })
}

func (w *world) FleetPool(name string) *fleet.Pool {
	return locked(w, func() *fleet.Pool { return w.pools[name] })
}
func (w *world) FleetPools() iter.Seq[*fleet.Pool] { return sorted(w, w.pools) }
func (w *world) FleetMemory(name string) *fleet.Memory {
	return locked(w, func() *fleet.Memory { return w.memory[name] })
}

func (w *world) Node(id string) *drover.Node {
	return locked(w, func() *drover.Node { return w.nodes[id] })
}
func (w *world) FleetCosts(string) iter.Seq[*fleet.Cost] { return slices.Values(w.costs) }
func (w *world) FleetInstances(string) iter.Seq[*fleet.InstanceRecord] {
	return sorted(w, w.rows)
}

func (w *world) FleetInstance(id string) *fleet.InstanceRecord {
	return locked(w, func() *fleet.InstanceRecord { return w.rows[id] })
}

func (w *world) UnfinishedByNode(string) iter.Seq[*drover.Allocation] {
	return func(func(*drover.Allocation) bool) {}
}

// The view of the demand sees nothing.
type nothing struct{ *world }

func (nothing) Job(string, string) *drover.Job        { return nil }
func (nothing) Evaluation(string) *drover.Evaluation  { return nil }
func (n nothing) Nodes(string) iter.Seq[*drover.Node] { return func(func(*drover.Node) bool) {} }
func (nothing) Evaluations(string, string) iter.Seq[*drover.Evaluation] {
	return func(func(*drover.Evaluation) bool) {}
}

func (nothing) ActiveAllocationsByJob(string, string) iter.Seq[*drover.Allocation] {
	return func(func(*drover.Allocation) bool) {}
}

func locked[T any](w *world, f func() T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f()
}

func sorted[T any](w *world, m map[string]T) iter.Seq[T] {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []T
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return slices.Values(list)
}

// write changes the state, unless the log refuses.
func (w *world) write(do func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses > 0 {
		w.refuses--
		return drover.Errorf(drover.Unavailable, "no quorum")
	}
	do()
	w.index++
	close(w.changed)
	w.changed = make(chan struct{})
	return nil
}

func (w *world) IsLeader() bool { return !w.follower }

func (w *world) Follow(ctx context.Context, lead func(context.Context)) {
	if !w.follower {
		lead(ctx)
	}
	<-ctx.Done()
}

func (w *world) Barrier(context.Context) error { return nil }
func (w *world) InitFleet(_ context.Context, who fleet.Identity) error {
	return w.write(func() { w.identity = &who })
}

func (w *world) PutPools(_ context.Context, list []*fleet.Pool) error {
	return w.write(func() {
		for _, p := range list {
			w.pools[p.Name] = p
		}
	})
}

func (w *world) DeletePools(_ context.Context, names []string) error {
	return w.write(func() {
		for _, name := range names {
			delete(w.pools, name)
		}
	})
}

func (w *world) Update(_ context.Context, u Update) error {
	return w.write(func() {
		for _, i := range u.Put {
			w.rows[i.ID] = i
		}
		for _, gone := range u.Forget {
			delete(w.rows, gone)
		}
		if u.Learned != nil {
			w.memory[u.Learned.Provider] = u.Learned
		}
	})
}

func (w *world) Pools() (uint64, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.index, w.changed
}

func (w *world) Machines() <-chan struct{} {
	return locked(w, func() <-chan struct{} { return w.changed })
}

// steering are the nodes as the keeper steers them.
type steering struct{ *world }

func (s steering) note(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steered = append(s.steered, what)
	return nil
}

func (s steering) Drain(_ context.Context, node string, within time.Duration) error {
	return s.note("drain " + node + " within " + within.String())
}
func (s steering) Cordon(_ context.Context, node string) error  { return s.note("cordon " + node) }
func (s steering) Undrain(_ context.Context, node string) error { return s.note("undrain " + node) }
func (s steering) Forget(_ context.Context, node string) error  { return s.note("forget " + node) }

func policy(name string) *fleet.Policy {
	p := &fleet.Policy{
		Name: name, Provider: "sim", Zones: []string{"a"}, Image: "img", Idle: time.Minute,
		Types: []fleet.InstanceType{{Name: "c.1", Capacity: drover.Capacity{CPU: 2000, MemoryMB: 4096}, Price: 0.1}},
	}
	p.Canonicalize()
	return p
}

// newKeeper is one over the world, with a simulated cloud and the configuration.
func newKeeper(t *testing.T, w *world, cfg Config) (*Keeper, *sim.Provider) {
	t.Helper()
	cloud := sim.New(sim.Config{Owner: "me", Offerings: policy("p").Offerings(), Caps: provider.Capabilities{Idempotent: true, Batch: 10}},
		clock.Wall{})
	if cfg.Providers == nil {
		cfg.Providers = []Provider{{
			Name: "sim", Kind: provider.KindLoopback, PriceEvery: time.Hour,
			Open: func(string, []string) (provider.Provider, error) { return cloud, nil },
		}}
	}
	audit, err := office.OpenAudit("", clock.Wall{})
	require.NoError(t, err)
	return New(cfg, Deps{
		State: func() State { return w }, Log: w, Changes: w, Nodes: steering{w}, Audit: audit, Clock: clock.Wall{}, IDs: id.NewSeeded(1),
		View:   demand.New(demand.Config{}, demand.Deps{State: func() demand.State { return nothing{w} }}),
		Meters: meters.New(telemetry.NewMetrics(clock.Wall{}), clock.Wall{}), Logger: slog.New(slog.DiscardHandler),
	}), cloud
}

// run runs the keeper; the function that it returns ends it.
func run(t *testing.T, k *Keeper) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }() // ends with ctx
	synctest.Wait()
	return func() {
		cancel(errors.New("the test is over"))
		require.NoError(t, <-done)
	}
}

func TestPoolsOfTheConfigurationAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pools["old"] = &fleet.Pool{Name: "old", Policy: policy("old"), Source: fleet.SourceConfig}
		w.identity = &fleet.Identity{Owner: "me", Key: []byte("key")}
		kept := policy("p")
		kept.Min = 2
		k, cloud := newKeeper(t, w, Config{Pools: []*fleet.Policy{kept}, Datacenter: "dc9"})
		stop := run(t, k)
		require.Equal(t, fleet.SourceConfig, w.FleetPool("p").Source)
		require.Nil(t, w.FleetPool("old"), "it retired, and had no machine")
		require.Equal(t, "dc9", k.policies("sim")[0].Datacenter)
		require.Equal(t, kept.NodePool, k.firstNodePool())
		time.Sleep(time.Minute)
		list, err := pool.ListAll(t.Context(), cloud)
		require.NoError(t, err)
		require.Len(t, list, 2, "the minimum was bought")
		require.Len(t, slices.Collect(w.FleetInstances("")), 2, "and recorded")

		changed := *w.FleetPool("p")
		changed.PauseCreates = true
		require.NoError(t, w.PutPools(t.Context(), []*fleet.Pool{&changed}))
		synctest.Wait()
		require.NoError(t, k.Each(t.Context(), func(name string, _ time.Time, c *pool.Core) error {
			require.Equal(t, "sim", name)
			require.True(t, c.Policies()[0].PauseCreates, "the loop heard of the change")
			return nil
		}))
		stop()
		list, err = pool.ListAll(t.Context(), cloud)
		require.NoError(t, err)
		require.Len(t, list, 2, "machines stay when a server stops")
	})
}

func TestAnAgentThatKeepsNothingTakesItsMachinesAlong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.identity = &fleet.Identity{Owner: "me", Key: []byte("key")}
		kept := policy("p")
		kept.Min = 1
		k, cloud := newKeeper(t, w, Config{Pools: []*fleet.Policy{kept}, Forgetful: true})
		stop := run(t, k)
		time.Sleep(time.Minute)
		stop()
		list, err := pool.ListAll(t.Context(), cloud)
		require.NoError(t, err)
		for _, m := range list {
			require.NotContains(t, []provider.State{provider.Pending, provider.Running}, m.State)
		}
	})
}

func TestWhoMayBeAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.follower = true
		k, _ := newKeeper(t, w, Config{})
		none := func(string, time.Time, *pool.Core) error { return nil }
		err := k.Each(t.Context(), none)
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))
		w.follower = false
		err = k.Each(t.Context(), none)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "it leads, and is not open yet")
		require.Empty(t, k.Problem("sim"))
		k, _ = newKeeper(t, w, Config{Providers: []Provider{{Name: "broken", Open: func(string, []string) (provider.Provider, error) {
			return nil, drover.Errorf(drover.Invalid, "no credentials")
		}}}})
		stop := run(t, k)
		require.Equal(t, "no credentials", k.Problem("broken"))
		require.Contains(t, k.Problem("sim"), `there is no provider "sim"`)
		require.NoError(t, k.Each(t.Context(), func(string, time.Time, *pool.Core) error { return errors.New("there is no loop") }))
		stop()
		err = k.Each(t.Context(), none)
		require.Equal(t, drover.NotLeader, drover.CodeOf(err), "its term is over")
	})
}

func TestIntentsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	w := newWorld()
	k, _ := newKeeper(t, w, Config{})
	rows := intents{k, "sim", time.Time{}}
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	require.NoError(t, rows.Record(t.Context(), []fleet.Durable{{
		ID: "i1", Pool: "p", Offering: "o", Template: "t", PlannedAt: at, Bought: "work waits",
	}}))
	require.Equal(t, fleet.InstanceCreating, w.rows["i1"].State)
	w.rows["other"] = &fleet.InstanceRecord{Durable: fleet.Durable{ID: "other", Provider: "another"}}
	list, err := rows.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, []fleet.Durable{{
		ID: "i1", Pool: "p", Provider: "sim", Offering: "o", Template: "t", PlannedAt: at, Bought: "work waits",
		State: fleet.InstanceCreating, Why: "recorded", Reason: "the cloud is asked for it",
	}}, list)

	w.nodes["n1"] = &drover.Node{ID: "n1"}
	gone := fleet.Instance{Durable: fleet.Durable{ID: "i1", Pool: "p", State: fleet.InstanceGone, NodeID: "n1", GoneAt: at}}
	require.NoError(t, rows.Update(t.Context(), pool.Update{Changed: []fleet.Instance{gone}, Learned: []byte("slow")}))
	require.Equal(t, []string{"forget n1"}, w.steered, "what ran there is lost")
	require.Equal(t, []byte("slow"), rows.learned())
	list, err = rows.Load(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	w.refuses = 1
	require.Error(t, rows.Update(t.Context(), pool.Update{Changed: []fleet.Instance{gone}}))
}

func TestRowsOfMachinesThatAreGoneAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	k, _ := newKeeper(t, w, Config{})
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for n := range goneKept + 2 {
		name := fmt.Sprintf("i%04d", n)
		w.rows[name] = &fleet.InstanceRecord{Durable: fleet.Durable{
			ID: name, State: fleet.InstanceGone,
			GoneAt: at.Add(time.Duration(n) * time.Second),
		}}
	}
	require.NoError(t, intents{k, "sim", time.Time{}}.Update(t.Context(), pool.Update{Changed: []fleet.Instance{{Durable: fleet.Durable{
		ID:    "new",
		State: fleet.InstanceGone, GoneAt: at,
	}}}}))
	require.NotContains(t, w.rows, "i0000")
	require.NotContains(t, w.rows, "i0001")
	require.Contains(t, w.rows, "i0002")
	require.Nil(t, oldest([]string{"a"}, []time.Time{at}, 0))
}

func TestADrainIsAskedForOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		k, _ := newKeeper(t, w, Config{})
		rows := intents{k, "sim", time.Time{}}
		require.NoError(t, rows.Drain(t.Context(), "none", time.Time{}), "it is gone")
		w.nodes["n1"] = &drover.Node{ID: "n1"}
		require.NoError(t, rows.Drain(t.Context(), "n1", time.Time{}))
		w.nodes["n1"] = &drover.Node{ID: "n1", DrainStrategy: &drover.DrainStrategy{}}
		require.NoError(t, rows.Drain(t.Context(), "n1", time.Time{}), "it drains already")
		require.NoError(t, rows.Drain(t.Context(), "n1", time.Now().Add(time.Minute)))
		require.NoError(t, rows.Drain(t.Context(), "n1", time.Now().Add(-time.Minute)))
		require.NoError(t, rows.Cordon(t.Context(), "n1"))
		require.NoError(t, rows.Undrain(t.Context(), "n1"))
		require.Equal(t, []string{"drain n1 within 0s", "drain n1 within 1m0s", "drain n1 within 1s", "cordon n1", "undrain n1"}, w.steered)
	})
}

func TestUserDataOfABatchAreEqual(t *testing.T) {
	t.Parallel()
	b := provider.Batch{ID: "x", Size: 3}
	data := UserData(bootstrap.Home{Kind: provider.KindEC2, Server: "s:1"}, []byte("k"))
	p := policy("p")
	p.UserData = "${config}"
	require.Equal(t, data(p, b.Intent(0)), data(p, b.Intent(2)))
	require.Contains(t, data(p, b.Intent(0)), pool.Token([]byte("k"), b.Intent(2)))
	require.Contains(t, data(p, "alone"), `join_token = "`+pool.Token([]byte("k"), "alone"))
}

// Machines are told of all servers, the same by each of them: a create that another server repeats is the same create.
func TestMachinesAreToldOfAllServers(t *testing.T) {
	t.Parallel()
	var list []string
	home := bootstrap.Home{Server: "own:1"}
	k, _ := newKeeper(t, newWorld(), Config{Home: home, Servers: func() []string { return list }})
	require.Equal(t, bootstrap.Home{Kind: "k", Server: "own:1"}, k.home("k"), "it is alone")
	list = []string{"a:1", "b:1", "own:1"}
	require.Equal(t, bootstrap.Home{Kind: "k", Server: "a:1", Others: []string{"b:1", "own:1"}}, k.home("k"))
	k, _ = newKeeper(t, newWorld(), Config{Home: home})
	require.Equal(t, "own:1", k.home("k").Server)
}

func TestSpentTodayIsOfThePool(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.costs = []*fleet.Cost{{Pool: "p", Cost: 1}, {Pool: "q", Cost: 2}, {Pool: "p", Cost: 3}}
	k, _ := newKeeper(t, w, Config{})
	require.InDelta(t, 4, k.spentToday("p"), 0.001)
}
