package planner

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeState is the state and the log in maps. It copies on write: a snapshot stays as it was.
type fakeState struct {
	mu      sync.Mutex
	index   uint64
	nodes   map[string]*drover.Node
	allocs  map[string]*drover.Allocation
	evals   map[string]*drover.Evaluation
	entries int
	version int                  // of the cluster
	plans   []command.PlanCommit // all that were committed
	gate    chan struct{}        // if not nil, Propose waits for a value first
	arrived chan struct{}        // if not nil, Propose sends when it was called
	fail    error

	accounts func(s *fakeSnapshot, namespace string) *quota.Account // nil: nothing is limited
}

type fakeSnapshot struct {
	accounts func(s *fakeSnapshot, namespace string) *quota.Account
	index    uint64
	version  int
	nodes    map[string]*drover.Node
	allocs   map[string]*drover.Allocation
}

func newFakeState() *fakeState {
	return &fakeState{
		index: 1, nodes: map[string]*drover.Node{}, allocs: map[string]*drover.Allocation{},
		evals: map[string]*drover.Evaluation{},
	}
}

func (f *fakeState) snapshot() Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &fakeSnapshot{f.accounts, f.index, f.version, maps.Clone(f.nodes), maps.Clone(f.allocs)}
}

func (s *fakeSnapshot) QuotaAccount(namespace string) *quota.Account {
	if s.accounts == nil {
		return nil
	}
	return s.accounts(s, namespace)
}

func (s *fakeSnapshot) Index() uint64                           { return s.index }
func (s *fakeSnapshot) Cluster() *cluster.State                 { return &cluster.State{Version: s.version} }
func (s *fakeSnapshot) Node(id string) *drover.Node             { return s.nodes[id] }
func (s *fakeSnapshot) Allocation(id string) *drover.Allocation { return s.allocs[id] }
func (s *fakeSnapshot) UnfinishedByNode(nodeID string) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for _, id := range slices.Sorted(maps.Keys(s.allocs)) {
			if s.allocs[id].NodeID == nodeID && !s.allocs[id].ClientTerminal() && !yield(s.allocs[id]) {
				return
			}
		}
	}
}

func (s *fakeSnapshot) Used(nodeID string) drover.Capacity {
	var c drover.Capacity
	for a := range s.UnfinishedByNode(nodeID) {
		if a.HoldsResources() {
			c = c.Add(a.AllocatedResources.Used())
		}
	}
	return c
}

func (f *fakeState) Propose(ctx context.Context, c command.Command) (uint64, any, error) {
	if f.arrived != nil {
		f.arrived <- struct{}{}
	}
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return 0, nil, f.fail
	}
	f.index++
	f.entries++
	switch c := c.(type) {
	case *command.UpdateEvals:
		f.store(c.Evals)
	case *command.ApplyPlans:
		f.store(c.Evals)
		f.plans = append(f.plans, c.Plans...)
		for _, p := range c.Plans {
			for _, a := range p.Placed {
				f.allocs[a.ID] = a
			}
			for _, s := range p.Stopped {
				stopped := *f.allocs[s.ID]
				stopped.DesiredStatus = drover.AllocDesiredStop
				f.allocs[s.ID] = &stopped
			}
		}
	case *command.SetEligibility:
		n := *f.nodes[c.NodeID]
		n.SchedulingEligibility, n.Events = c.Eligibility, append(n.Events, c.Event)
		f.nodes[n.ID] = &n
	default:
		return 0, nil, fmt.Errorf("unexpected %T", c)
	}
	return f.index, nil, nil
}

func (f *fakeState) store(evals []*drover.Evaluation) {
	for _, e := range evals {
		f.evals[e.ID] = e
	}
}

func (f *fakeState) setNode(n *drover.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[n.ID] = n
}

func node(id string, cpu int64) *drover.Node {
	return &drover.Node{
		ID: id, Status: drover.NodeStatusReady, SchedulingEligibility: drover.NodeEligible,
		NodeResources: &drover.NodeResources{Cpu: drover.NodeCpuResources{CpuShares: cpu}},
	}
}

func alloc(id, nodeID string, cpu int64, ports ...int) *drover.Allocation {
	r := &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{
		"t": {Cpu: drover.AllocatedCpuResources{CpuShares: cpu}},
	}}
	for _, p := range ports {
		r.Shared.Ports = append(r.Shared.Ports, network.PortMapping{Value: p})
	}
	return &drover.Allocation{
		ID: id, NodeID: nodeID, JobID: "j", Namespace: "default", AllocatedResources: r,
		DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientPending,
	}
}

func place(allocs ...*drover.Allocation) *drover.Plan {
	p := &drover.Plan{
		EvalID: "e", Job: &drover.Job{Namespace: "default", ID: "j", Type: drover.JobTypeService, Priority: 50},
		NodeAllocation: map[string][]*drover.Allocation{},
	}
	for _, a := range allocs {
		p.NodeAllocation[a.NodeID] = append(p.NodeAllocation[a.NodeID], a)
	}
	return p
}

func newPlanner(f *fakeState, cfg Config) *Planner {
	return New(cfg, Deps{
		Log: f, State: f.snapshot, Clock: clock.Wall{}, IDs: id.NewSeeded(1), Logger: slog.New(slog.DiscardHandler),
		Token: func(string) (string, bool) { return "t", true },
	})
}

// start runs p until the test ends.
func start(t *testing.T, p *Planner) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Run(ctx) }() // ends at cleanup
	t.Cleanup(func() { cancel(); <-done })
}
