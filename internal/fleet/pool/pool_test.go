package pool_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
	"github.com/drover-project/drover/internal/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func policy() *fleet.Policy {
	p := &fleet.Policy{
		Name: "p", Provider: "sim", Zones: []string{"a"}, Image: "img", UserData: "token=${token}", Idle: time.Minute,
		Types: []fleet.InstanceType{{Name: "c.1", Capacity: drover.Capacity{CPU: 2000, MemoryMB: 4096}, Price: 0.1}},
	}
	p.Canonicalize()
	return p
}

// world is control and the raft log, for the loop.
type world struct {
	mu      sync.Mutex
	cloud   *sim.Provider
	demand  []fleet.DemandClass
	nodes   map[string]*pool.Node
	intents map[string]fleet.Durable
	states  map[string][]string // that the log was told, by machine
	cost    float64
	total   drover.Capacity // of nodes
	policy  *fleet.Policy
	// policies, if there are several, and how they share.
	policies []*fleet.Policy
	sharing  *pool.Sharing
	spent    float64                                          // today, says the ledger
	work     int                                              // on each node, as soon as it is there
	fail     error                                            // of Record
	data     func(policy *fleet.Policy, intent string) string // of machines; nil = pool.UserData
	changed  chan struct{}
	log      pool.Intents // nil = the world itself
	leads    func() error // nil = it leads; called with mu
}

func newWorld(cfg sim.Config) *world {
	cfg.Owner, cfg.Offerings = "me", append(cfg.Offerings, policy().Offerings()...)
	cfg.Caps.Idempotent, cfg.Caps.Batch = true, 10
	w := &world{
		cloud: sim.New(cfg, clock.Wall{}), nodes: map[string]*pool.Node{}, intents: map[string]fleet.Durable{},
		states: map[string][]string{}, changed: make(chan struct{}),
	}
	w.cloud.Notify = func(h sim.Happening) {
		if h.Kind == "booted" {
			w.change(func() {
				w.nodes["n-"+h.ID] = &pool.Node{ID: "n-" + h.ID, Intent: h.Intent, Report: pool.Report{Ready: true, Total: w.total, Work: w.work}}
				w.demand = nil // whatever waited found a place
			})
		}
	}
	return w
}

func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) Demand(string) ([]fleet.DemandClass, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.demand, w.changed
}

func (w *world) Nodes() (list []pool.Node, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		list = append(list, *n)
	}
	return list, w.changed
}

func (w *world) steer(node string, drained bool) error {
	w.change(func() {
		if n := w.nodes[node]; n != nil {
			n.Report.Drained = drained
		}
	})
	return nil
}

func (w *world) Drain(_ context.Context, node string, _ time.Time) error { return w.steer(node, true) }
func (w *world) Cordon(_ context.Context, node string) error             { return w.steer(node, true) }
func (w *world) Undrain(_ context.Context, node string) error            { return w.steer(node, false) }

func (w *world) Load(context.Context) (list []fleet.Durable, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range w.intents {
		list = append(list, in)
	}
	return list, nil
}

func (w *world) Record(_ context.Context, intents []fleet.Durable) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range intents {
		w.intents[in.ID] = in
	}
	return w.fail
}

func (w *world) Update(_ context.Context, u pool.Update) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range u.Changed {
		w.states[i.ID] = append(w.states[i.ID], i.State.String())
		if i.State == fleet.InstanceGone {
			delete(w.intents, i.ID)
		}
	}
	for _, c := range u.Costs {
		w.cost += c.Cost
	}
	return nil
}

func (w *world) isLeader(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leads == nil {
		return nil
	}
	return w.leads()
}

// charged is what the log was told that all machines cost.
func (w *world) charged() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cost
}

func (w *world) running() (n int) {
	w.cloud.With(func(_ time.Time, c *sim.Cloud) { n, _ = c.Running() })
	return n
}

// run starts a loop, and the cloud's clockwork beside it; stop ends both.
func (w *world) run(t *testing.T) (p *pool.Pool, stop func()) {
	policies := w.policies
	if policies == nil {
		policies = []*fleet.Policy{cmp.Or(w.policy, policy())}
	}
	data := w.data
	if data == nil {
		data = pool.UserData([]byte("key"))
	}
	p = pool.New(pool.Config{
		Owner: "me", Provider: "sim", Policies: policies, Sharing: w.sharing, Seed: 1,
		Spent: func(string) float64 { return w.spent }, IDs: id.NewSeeded(uint64(time.Now().UnixNano())), UserData: data,
		Shareable: func(p *fleet.Policy) bool { return !strings.Contains(p.UserData, "${token}") },
	},
		pool.Deps{
			Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Provider: w.cloud, Demand: w, Nodes: w,
			Intents: cmp.Or[pool.Intents](w.log, w), Leads: w.isLeader,
		})
	ctx, cancel := context.WithCancelCause(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = p.Run(ctx) }) // ends with ctx
	all.Go(func() {                   // ends with ctx
		for clock.Sleep(ctx, clock.Wall{}, 2*time.Second) {
			w.running()
		}
	})
	return p, func() { cancel(errors.New("the test is over")); all.Wait() }
}

func instances(t *testing.T, p *pool.Pool) (list []fleet.Instance) {
	require.NoError(t, p.Do(t.Context(), func(_ time.Time, c *pool.Core) error {
		list = c.Instances("p")
		return nil
	}))
	return list
}

func work(n int) []fleet.DemandClass {
	return []fleet.DemandClass{{Name: "w", Each: drover.Capacity{CPU: 2000, MemoryMB: 1000}, Count: n, Priority: 50, Since: time.Now()}}
}

func TestMachinesComeAndGoAsTheWorkAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{Latency: 100 * time.Millisecond})
		p, stop := w.run(t)
		defer stop()
		time.Sleep(10 * time.Second)
		require.Zero(t, w.running())
		w.change(func() { w.demand = work(64) })
		time.Sleep(time.Second)
		require.Equal(t, 64, w.running(), "a burst is created within a second")
		require.Len(t, instances(t, p), 64)
		time.Sleep(10 * time.Minute)
		require.Zero(t, w.running(), "idle machines are returned")
		require.Empty(t, w.intents)
		require.Len(t, w.states, 64)
		for id, states := range w.states {
			states = slices.Compact(states) // it is charged in between
			require.Equal(t, []string{"active", "draining", "destroying", "gone"}, states[len(states)-4:], id)
		}
		w.cloud.With(func(now time.Time, c *sim.Cloud) {
			require.InEpsilon(t, c.Cost(now), w.charged(), 0.02, "the ledger is the bill")
		})
	})
}

func TestARestartAdoptsEverythingAndDestroysNothingBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{Latency: 100 * time.Millisecond, Boot: 20 * time.Second})
		_, stop := w.run(t)
		time.Sleep(time.Minute)
		w.change(func() { w.demand = work(5) })
		time.Sleep(500 * time.Millisecond)
		stop() // killed while they boot
		require.Equal(t, 5, w.running())
		p, stop := w.run(t)
		time.Sleep(45 * time.Second)
		w.change(func() {
			for _, n := range w.nodes {
				n.Report.Work = 1
			}
		})
		time.Sleep(10 * time.Minute)
		require.Equal(t, 5, w.running())
		for _, i := range instances(t, p) {
			require.True(t, i.Adopted)
			require.Equal(t, fleet.InstanceActive, i.State)
		}
		stop()
	})
}

func TestOperators(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{})
		p, stop := w.run(t)
		defer stop()
		time.Sleep(time.Minute)
		w.change(func() { w.demand = work(2) })
		time.Sleep(40 * time.Second)
		list := instances(t, p)
		require.Len(t, list, 2)
		behave := func(instance string, b fleet.IdleBehavior) error {
			return p.Do(t.Context(), func(now time.Time, c *pool.Core) error { return c.Behave(now, instance, b, "a test") })
		}
		require.Equal(t, drover.NotFound, drover.CodeOf(behave("nobody", fleet.BehaviorHold)))
		require.Equal(t, drover.Invalid, drover.CodeOf(behave(list[0].ID, "dance")))
		require.NoError(t, behave(list[0].ID, fleet.BehaviorHold))
		time.Sleep(15 * time.Minute)
		require.Equal(t, 1, w.running(), "held machines stay")
		out, err := p.Plan(t.Context(), "p")
		require.NoError(t, err)
		require.Empty(t, out.Actions)
		_, err = p.Plan(t.Context(), "q")
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		require.NoError(t, p.Do(t.Context(), func(now time.Time, c *pool.Core) error { return c.Kill(now, list[0].ID, "enough") }))
		time.Sleep(time.Minute)
		require.Zero(t, w.running())
	})
}

func TestNothingIsBoughtWithoutARecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{})
		w.fail = drover.Errorf(drover.NotLeader, "no leader")
		_, stop := w.run(t)
		defer stop()
		w.change(func() { w.demand = work(2) })
		time.Sleep(5 * time.Minute)
		w.cloud.With(func(_ time.Time, c *sim.Cloud) { require.Zero(t, c.Calls[provider.CallCreate]) })
	})
}

func TestTokens(t *testing.T) {
	t.Parallel()
	token := pool.Token([]byte("key"), "intent-1")
	in, err := pool.IntentOf([]byte("key"), token)
	require.NoError(t, err)
	require.Equal(t, "intent-1", in)
	for _, bad := range []string{"", "intent-1", "intent-2" + token[8:], token + "0"} {
		_, err := pool.IntentOf([]byte("key"), bad)
		require.Equal(t, drover.Unauthorized, drover.CodeOf(err), bad)
	}
	require.Equal(t, "token="+token, pool.UserData([]byte("key"))(policy(), "intent-1"))
}

func TestPoolsComeChangeAndGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{})
		p, stop := w.run(t)
		defer stop()
		time.Sleep(time.Minute)
		w.change(func() { w.demand = work(2) })
		time.Sleep(40 * time.Second)
		w.change(func() {
			for _, n := range w.nodes {
				n.Report.Work = 1
			}
		})
		bigger := *policy()
		bigger.Min = 3
		require.NoError(t, p.SetPolicies(t.Context(), []*fleet.Policy{&bigger}))
		time.Sleep(time.Minute)
		require.Equal(t, 3, w.running(), "a new minimum holds at once")
		require.NoError(t, p.SetPolicies(t.Context(), nil))
		time.Sleep(11 * time.Minute)
		require.Equal(t, 2, w.running(), "busy orphans stay")
		require.NoError(t, p.SetPolicies(t.Context(), []*fleet.Policy{policy()}))
		time.Sleep(time.Minute)
		for _, i := range instances(t, p) {
			require.Equal(t, fleet.InstanceActive, i.State, "a pool that is there again has its machines again")
		}
		require.Len(t, instances(t, p), 2)
		ends := *policy()
		ends.Retiring, ends.PauseCreates = true, true
		require.NoError(t, p.SetPolicies(t.Context(), []*fleet.Policy{&ends}))
		time.Sleep(10 * time.Minute)
		require.Equal(t, 2, w.running(), "a pool that ends waits for its work")
		w.change(func() {
			for _, n := range w.nodes {
				n.Report.Work = 0
			}
		})
		time.Sleep(time.Minute)
		require.Zero(t, w.running())
	})
}

func TestAnOfferingIsWhatItsMachinesAre(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{})
		w.total = drover.Capacity{CPU: 1900, MemoryMB: 4000, DiskMB: 10_000}
		p, stop := w.run(t)
		defer stop()
		w.change(func() { w.demand = work(1) })
		time.Sleep(time.Minute)
		w.change(func() { w.demand = work(1) }) // it does not fit, after all
		time.Sleep(10 * time.Minute)
		w.cloud.With(func(_ time.Time, c *sim.Cloud) {
			require.Equal(t, 1, c.Calls[provider.CallCreate], "not bought again and again")
		})
		out, err := p.Plan(t.Context(), "p")
		require.NoError(t, err)
		require.Contains(t, out.Waiting[0].Reason, "big enough")
	})
}

func TestABudgetHoldsOverARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{})
		w.policy = policy()
		w.policy.Budget.PerDay = 0.45
		w.spent = 0.3 // another machine would have to be paid for an hour
		_, stop := w.run(t)
		defer stop()
		w.change(func() { w.demand = work(3) })
		time.Sleep(time.Minute)
		require.Equal(t, 1, w.running())
	})
}

func TestACloudThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(sim.Config{Errors: 1})
		p, stop := w.run(t)
		defer stop()
		w.change(func() { w.demand = work(2) })
		time.Sleep(5 * time.Minute)
		require.NoError(t, p.Do(t.Context(), func(_ time.Time, c *pool.Core) error {
			require.Contains(t, c.Trouble(), "listing its machines: transient")
			return nil
		}))
		require.Zero(t, w.running(), "nothing is decided before the whole picture was seen")
	})
}
