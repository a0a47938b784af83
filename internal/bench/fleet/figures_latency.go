package fleet

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/simulator"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/wake"
)

// still is a fleet of busy machines around a real pool.Pool on the wall's clock; only the demand moves.
type still struct {
	policy   *fleet.Policy
	machines []provider.Machine
	intents  []fleet.Durable
	created  chan time.Time
	now      func() time.Time
	never    chan struct{}

	mu      sync.Mutex
	classes []fleet.DemandClass
	changed wake.Broadcast
}

// Demand implements pool.Demand.
func (s *still) Demand(string) ([]fleet.DemandClass, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.classes, s.changed.C()
}

// want makes it n pieces of work that wait, each as big as a machine.
func (s *still) want(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.classes = []fleet.DemandClass{{
		Name: "task", NodePool: s.policy.NodePool, Each: s.policy.Types[0].Capacity, Count: n, Priority: 50, Since: s.now(),
	}}
	s.changed.Send()
}

// Nodes implements pool.Nodes. Every machine is busy, so that the fleet has no reason to return one.
func (s *still) Nodes() ([]pool.Node, <-chan struct{}) {
	list := make([]pool.Node, len(s.intents))
	for k := range list {
		list[k] = pool.Node{
			ID: s.intents[k].NodeID, Intent: s.intents[k].ID,
			Report: pool.Report{Ready: true, Work: 1, Used: drover.Capacity{CPU: 2000, MemoryMB: 4096}},
		}
	}
	return list, s.never
}

// The log, control and the cloud accept everything at once, so that only the loop itself is measured.
func (s *still) Drain(context.Context, string, time.Time) error { return nil }
func (s *still) Cordon(context.Context, string) error           { return nil }
func (s *still) Undrain(context.Context, string) error          { return nil }
func (s *still) Load(context.Context) ([]fleet.Durable, error)  { return s.intents, nil }
func (s *still) Record(context.Context, []fleet.Durable) error  { return nil }
func (s *still) Update(context.Context, pool.Update) error      { return nil }
func (s *still) Destroy(context.Context, string) error          { return nil }

// Capabilities implements provider.Provider. Its rates are too high to delay a create.
func (s *still) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Idempotent: true, Batch: 100, Visible: time.Hour,
		Rates: map[provider.Call]provider.Rate{provider.CallCreate: {PerSecond: 1000, Burst: 1000}},
	}
}

func (s *still) SetTags(context.Context, string, map[string]string) error { return nil }

// List implements provider.Provider: all machines are on one page.
func (s *still) List(context.Context, string) ([]provider.Machine, string, error) {
	return s.machines, "", nil
}

// Create implements provider.Provider. It hands over the time of the call, which ends the measurement of it.
func (s *still) Create(ctx context.Context, req provider.Request) ([]provider.Machine, error) {
	select {
	case s.created <- s.now():
	case <-ctx.Done():
	}
	made := make([]provider.Machine, len(req.Intents))
	for k, in := range req.Intents {
		made[k] = provider.Machine{ID: "new-" + in.ID, Intent: in.ID, State: provider.Pending, CreatedAt: s.now()}
	}
	return made, nil
}

// figureLatency is how long after work waits a machine for it is asked for, by the real loop over 10,000 machines.
func figureLatency(ctx context.Context, quick bool, now func() time.Time, tell Tell) error {
	n := 200
	if quick {
		n = 40
	}
	p := simulator.StandardPolicy()
	p.Types = p.Types[:1]
	s := &still{policy: p, created: make(chan time.Time), now: now, never: make(chan struct{})}
	_, s.machines, s.intents = fleetOf(now(), p, 10_000)
	fleet := pool.New(
		pool.Config{Owner: "sim", Provider: "sim", Policies: []*fleet.Policy{p}, Seed: 1, IDs: id.NewSeeded(1)},
		pool.Deps{Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Provider: s, Demand: s, Nodes: s, Intents: s},
	)
	ctx, cancel := context.WithCancel(ctx)
	var loop sync.WaitGroup
	loop.Go(func() { _ = fleet.Run(ctx) }) // ends with ctx
	defer loop.Wait()
	defer cancel()
	var took []time.Duration
	for k := range n {
		began := now()
		s.want(k + 1)
		select {
		case at := <-s.created:
			if k > 0 { // the first one waits for the list
				took = append(took, at.Sub(began))
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	tell("fleet: queued work to create call at 10,000 machines, p50", percentile(took, 0.5), "ms", "")
	tell("fleet: queued work to create call at 10,000 machines, p99", percentile(took, 0.99), "ms", "< 200")
	return nil
}
