package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
	"github.com/drover-project/drover/internal/id"
)

// plane is what several servers share: the log with its terms, the nodes, the work, and the cloud.
type plane struct {
	cloud *sim.Provider
	rng   *rand.Rand

	mu      sync.Mutex // guards what follows
	term    int        // of who leads
	rows    map[string]fleet.Durable
	nodes   map[string]*pool.Node
	waits   int // pieces of work without a place; each takes a machine
	changed chan struct{}
	broken  []string // what must not happen, and did
	servers []*leader
	fault   fault
}

// fault is what happens to the first leader.
type fault struct {
	step  string        // before or behind which call
	nth   int           // of these
	pause time.Duration // 0 = it is killed
	late  time.Duration // after it goes on, until it hears that it does not lead any more
	done  bool
}

// The steps between which a leader is stopped.
var steps = []string{
	"record", "recorded", "create", "created", "update", "updated", "drain", "drained", "destroy", "destroyed", "list", "listed", "leads",
}

func newPlane(seed uint64) *plane {
	r := rand.New(rand.NewPCG(seed, 3))
	cfg := sim.Config{
		Seed: seed, Owner: "me", Offerings: policy().Offerings(), Latency: time.Duration(r.IntN(3000)) * time.Millisecond, Boot: 10 * time.Second,
	}
	cfg.Caps = provider.Capabilities{Idempotent: true, Batch: 1 + r.IntN(3), Visible: 2 * time.Second}
	p := &plane{
		cloud: sim.New(cfg, clock.Wall{}), rng: r, rows: map[string]fleet.Durable{}, nodes: map[string]*pool.Node{}, changed: make(chan struct{}),
		fault: fault{step: steps[int(seed)%len(steps)], nth: 1 + r.IntN(4), late: time.Duration(r.IntN(2000)) * time.Millisecond},
	}
	if r.IntN(3) > 0 {
		p.fault.pause = time.Duration(1+r.IntN(120)) * time.Second
	}
	p.cloud.Notify = func(h sim.Happening) {
		if h.Kind == "booted" {
			p.change(func() { p.nodes[h.ID] = &pool.Node{ID: h.ID, Intent: h.Intent, Report: pool.Report{Ready: true}} })
		}
	}
	return p
}

// change changes what is shared, and lets work find a place.
func (p *plane) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	for _, n := range p.nodes {
		if p.waits > 0 && n.Report.Work == 0 && !n.Report.Drained && !n.Lost {
			n.Report.Work, n.Report.Used = 1, work(1)[0].Each
			p.waits--
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// ends lets so many pieces of work end.
func (p *plane) ends(count int) {
	p.change(func() {
		for _, n := range p.nodes {
			if n.Report.Work > 0 && count > 0 {
				n.Report.Work, n.Report.Used = 0, drover.Capacity{}
				count--
			}
		}
	})
}

// begin makes another server the leader.
func (p *plane) begin(t *testing.T) {
	p.mu.Lock()
	p.term++
	s := &leader{plane: p, term: p.term, frozen: make(chan struct{}), dead: make(chan struct{})}
	p.servers = append(p.servers, s)
	p.mu.Unlock()
	close(s.frozen)
	loop := pool.New(pool.Config{
		Owner: "me", Provider: "sim", Policies: []*fleet.Policy{policy()}, Seed: 1, IDs: id.NewSeeded(p.rng.Uint64()),
		UserData: pool.UserData([]byte("key")), Shareable: func(*fleet.Policy) bool { return false },
	}, pool.Deps{Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Provider: s, Demand: s, Nodes: s, Intents: s, Leads: s.Leads})
	ctx, cancel := context.WithCancelCause(t.Context())
	s.end = func() { cancel(errors.New("it does not lead any more")) }
	s.all.Go(func() { _ = loop.Run(ctx) }) // ends with ctx
}

// leader is a server with its loop. All that it does with others goes through pass.
type leader struct {
	*plane
	term   int
	end    func()
	all    sync.WaitGroup
	frozen chan struct{} // open while it is stopped; guarded by plane.mu
	dead   chan struct{}
}

// pass stops the server where the fault says so, and holds what a stopped server would do. Errors: it was killed.
func (s *leader) pass(step string) error {
	s.mu.Lock()
	if f := &s.fault; !f.done && s.term == 1 && f.step == step {
		if f.nth--; f.nth == 0 {
			f.done = true
			s.frozen = make(chan struct{})
			s.all.Go(s.goOn) // ends when it goes on, or is killed
		}
	}
	frozen := s.frozen
	s.mu.Unlock()
	<-frozen
	select {
	case <-s.dead:
		return errors.New("killed")
	default:
		return nil
	}
}

func (s *leader) goOn() {
	if s.fault.pause == 0 {
		<-s.dead
	} else {
		time.Sleep(s.fault.pause)
	}
	s.mu.Lock()
	close(s.frozen)
	s.mu.Unlock()
	time.Sleep(s.fault.late)
	s.end()
}

// stopped reports whether the first leader was stopped.
func (p *plane) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault.done
}

func (s *leader) leads() error {
	if s.term != s.plane.term {
		return drover.Errorf(drover.NotLeader, "another server leads")
	}
	return nil
}

// Leads is pool.Deps.Leads.
func (s *leader) Leads(context.Context) error {
	if err := s.pass("leads"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leads()
}

// write appends to the log, unless another term began.
func (s *leader) write(before, after string, list []fleet.Durable) error {
	if err := s.pass(before); err != nil {
		return err
	}
	s.mu.Lock()
	err := s.leads()
	for _, in := range list {
		if err == nil {
			s.rows[in.ID] = in
		}
	}
	s.mu.Unlock()
	return errors.Join(err, s.pass(after))
}

// Load, Record and Update are pool.Intents.
func (s *leader) Load(context.Context) (list []fleet.Durable, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.rows {
		if in.State != fleet.InstanceGone {
			list = append(list, in)
		}
	}
	return list, nil
}

func (s *leader) Record(_ context.Context, list []fleet.Durable) error {
	for k := range list {
		list[k].State = fleet.InstanceCreating
	}
	return s.write("record", "recorded", list)
}

func (s *leader) Update(_ context.Context, u pool.Update) error {
	var list []fleet.Durable
	for _, i := range u.Changed {
		list = append(list, i.Durable)
	}
	return s.write("update", "updated", list)
}

// Demand is pool.Demand.
func (s *leader) Demand(string) ([]fleet.DemandClass, <-chan struct{}) {
	_ = s.pass("demand")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits == 0 {
		return nil, s.changed
	}
	return work(s.waits), s.changed
}

// Nodes, Drain, Cordon and Undrain are pool.Nodes.
func (s *leader) Nodes() (list []pool.Node, changed <-chan struct{}) {
	_ = s.pass("nodes")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		list = append(list, *n)
	}
	return list, s.changed
}

func (s *leader) drained(node string, drained bool) error {
	if err := s.pass("drain"); err != nil {
		return err
	}
	s.change(func() {
		if n := s.nodes[node]; n != nil {
			n.Report.Drained = drained
		}
	})
	return s.pass("drained")
}

func (s *leader) Drain(_ context.Context, node string, _ time.Time) error {
	return s.drained(node, true)
}
func (s *leader) Cordon(_ context.Context, node string) error  { return s.drained(node, true) }
func (s *leader) Undrain(_ context.Context, node string) error { return s.drained(node, false) }

// Create, List, Destroy, SetTags and Capabilities are provider.Provider.
func (s *leader) Create(ctx context.Context, req provider.Request) ([]provider.Machine, error) {
	if err := s.pass("create"); err != nil {
		return nil, err
	}
	made, err := s.cloud.Create(ctx, req)
	return made, errors.Join(err, s.pass("created"))
}

func (s *leader) List(ctx context.Context, page string) ([]provider.Machine, string, error) {
	if err := s.pass("list"); err != nil {
		return nil, "", err
	}
	list, next, err := s.cloud.List(ctx, page)
	return list, next, errors.Join(err, s.pass("listed"))
}

func (s *leader) Destroy(ctx context.Context, machine string) error {
	if err := s.pass("destroy"); err != nil {
		return err
	}
	s.change(func() {
		if n := s.nodes[machine]; n != nil {
			if n.Report.Work > 0 {
				s.broken = append(s.broken, fmt.Sprintf("the leader of term %d destroyed %s with its work", s.term, machine))
			}
			delete(s.nodes, machine)
		}
	})
	err := s.cloud.Destroy(ctx, machine)
	return errors.Join(err, s.pass("destroyed"))
}

func (s *leader) SetTags(ctx context.Context, machine string, tags map[string]string) error {
	return s.cloud.SetTags(ctx, machine, tags)
}

func (s *leader) Capabilities() provider.Capabilities { return s.cloud.Capabilities() }

// end ends all servers.
func (p *plane) end() {
	for _, s := range p.servers {
		close(s.dead)
		s.end()
		s.all.Wait()
	}
}

// created is how many machines there ever were, and running how many there are.
func (p *plane) created() (created, running int) {
	p.cloud.With(func(_ time.Time, c *sim.Cloud) {
		running, _ = c.Running()
		created = c.Made()
	})
	return created, running
}

// passes lets time pass, and the cloud's machines boot.
func (p *plane) passes(d time.Duration) {
	for range int(d / time.Second) {
		time.Sleep(time.Second)
		p.created()
	}
}

// next waits for the fault, and makes another server the leader a second later. It waits at most so long.
func (p *plane) next(t *testing.T, most time.Duration) {
	for range int(most / time.Second) {
		if p.stopped() && len(p.servers) == 1 {
			p.passes(time.Second)
			p.begin(t)
			return
		}
		p.passes(time.Second)
	}
}

// TestALeaderIsStoppedAnywhere: the leader is killed, or stopped and goes on later, before or behind any of its calls, while
// machines are made, drained and destroyed. Another server leads a second later. No machine is bought for work that has one,
// none is destroyed with its work, and none is left.
func TestALeaderIsStoppedAnywhere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20 * len(steps)) {
		synctest.Test(t, func(t *testing.T) {
			p := newPlane(seed)
			f := p.fault
			story := fmt.Sprintf("seed %d: %s %d, paused for %v, late by %v", seed, f.step, f.nth, f.pause, f.late)
			p.begin(t)
			defer p.end()
			p.passes(time.Duration(p.rng.IntN(3)) * time.Second)
			const pieces = 4
			p.change(func() { p.waits = pieces })
			p.next(t, 30*time.Second)
			p.passes(150 * time.Second)
			created, running := p.created()
			require.Equal(t, []int{pieces, pieces}, []int{created, running}, "%s: bought and there", story)
			p.ends(2)
			p.next(t, time.Duration(50+p.rng.IntN(30))*time.Second)
			p.change(func() { p.waits += p.rng.IntN(3) }) // while others go
			p.next(t, 30*time.Second)
			p.passes(150 * time.Second)
			p.mu.Lock()
			waits := p.waits
			p.mu.Unlock()
			require.Zero(t, waits, "%s: all has a place", story)
			p.ends(100)
			p.next(t, 120*time.Second)
			p.passes(6 * time.Minute)
			_, running = p.created()
			require.Zero(t, running, "%s: left", story)
			p.mu.Lock()
			defer p.mu.Unlock()
			for id, row := range p.rows {
				require.Equal(t, fleet.InstanceGone, row.State, "%s: %s in the log", story, id)
			}
			require.Empty(t, p.broken, story)
		})
	}
}
