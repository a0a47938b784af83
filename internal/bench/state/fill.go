package state

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/telemetry"
	"github.com/drover-project/drover/network"
)

// allocsPerJob is the size of the jobs that Fill makes.
const allocsPerJob = 1000

// Fill fills a new data folder with the log and the snapshot of a server that has nodes and running allocations,
// for measurements. Every fourth job has a port, so that its allocations' resources differ. It returns how long the
// log took to take it all, and to write the snapshot.
func Fill(ctx context.Context, dataDir string, nodes, allocs int) (filled, snapshot time.Duration, err error) {
	telemetry.PaceGC()
	wall := clock.Wall{}
	log, err := raftlog.Open(raftlog.Config{DataDir: filepath.Join(dataDir, "server")}, raftlog.Deps{
		FSM: fsm.New(store.New(), nil), Log: slog.New(slog.DiscardHandler), Clock: wall,
	})
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = log.Close() }()
	if err := log.WaitLeader(ctx); err != nil {
		return 0, 0, err
	}
	begin := wall.Now()
	f := filler{ctx: ctx, log: log, ids: id.NewSeeded(1), now: begin}
	for i := range nodes {
		f.node(i)
	}
	for i := 0; i < allocs; i += allocsPerJob {
		f.job(i/allocsPerJob, min(allocsPerJob, allocs-i))
	}
	if f.err != nil {
		return 0, 0, f.err
	}
	filled = wall.Now().Sub(begin)
	begin = wall.Now()
	err = log.Snapshot()
	return filled, wall.Now().Sub(begin), err
}

// filler proposes commands until the first error, which Fill returns.
type filler struct {
	ctx   context.Context // of Fill
	log   *raftlog.Log
	ids   *id.Seeded
	now   time.Time
	nodes []*drover.Node
	err   error // the first
}

// propose writes a command through the log and returns its result; nil after the first error.
func (f *filler) propose(c command.Command) any {
	if f.err != nil {
		return nil
	}
	var result any
	_, result, f.err = f.log.Propose(f.ctx, c)
	return result
}

// node is as long as what a Linux machine reports of itself.
func (f *filler) node(i int) {
	n := &drover.Node{
		ID: f.ids.New(), SecretID: f.ids.New(), Name: fmt.Sprintf("node-%05d", i), Datacenter: "dc1", NodePool: drover.DefaultNodePool,
		Status: drover.NodeStatusReady, HTTPAddr: fmt.Sprintf("10.0.%d.%d:4646", i/250, i%250), Attributes: map[string]string{},
		Drivers: map[string]*drover.DriverInfo{}, Meta: map[string]string{"rack": fmt.Sprintf("r%d", i%50)},
		NodeResources: &drover.NodeResources{
			Cpu: drover.NodeCpuResources{CpuShares: 128_000, TotalCpuCores: 64}, Memory: drover.NodeMemoryResources{MemoryMB: 512_000},
			Disk: drover.NodeDiskResources{DiskMB: 2_000_000}, MinDynamicPort: network.MinDynamicPort, MaxDynamicPort: network.MaxDynamicPort,
		},
	}
	for k := range 60 {
		n.Attributes[fmt.Sprintf("platform.attribute.%02d", k)] = fmt.Sprintf("some value %02d", k)
	}
	n.Attributes["unique.hostname"] = n.Name
	for _, d := range []string{"raw_exec", "sandbox", "docker", "mock_driver"} {
		n.Drivers[d] = &drover.DriverInfo{
			Detected: true, Healthy: true, HealthDescription: "Healthy", UpdateTime: f.now,
			Attributes: map[string]string{"driver." + d: "1"},
		}
	}
	n.ComputedClass = feasible.ComputedClass(n)
	f.nodes = append(f.nodes, n)
	f.propose(&command.RegisterNode{Node: n, Time: f.now.UnixNano()})
}

// job registers a job and has all of its allocations placed and running, in three entries of the log, as a leader
// would.
func (f *filler) job(i, count int) {
	j := &drover.Job{ID: fmt.Sprintf("job-%04d", i), Type: drover.JobTypeService, TaskGroups: []*drover.TaskGroup{{
		Name: "group", Count: &count, Tasks: []*drover.Task{{
			Name: "task", Driver: "raw_exec", Config: map[string]any{"command": "/usr/bin/server", "args": []string{"-port", "8080"}},
			Env: map[string]string{"KEY": "value"}, Resources: &drover.Resources{CPU: 100, MemoryMB: 128},
		}},
	}}}
	j.Canonicalize()
	eval := &drover.Evaluation{
		ID: f.ids.New(), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority, Status: drover.EvalComplete,
		TriggeredBy: drover.TriggerJobRegister, CreateTime: f.now.UnixNano(), ModifyTime: f.now.UnixNano(),
	}
	stored, _ := f.propose(&command.RegisterJob{Job: j, Eval: eval, Time: f.now.UnixNano()}).(*drover.Job)
	plan, updates := f.plan(i, stored, eval, count), map[string][]exchange.AllocUpdate{}
	for _, a := range plan.Placed {
		updates[a.NodeID] = append(updates[a.NodeID], f.running(a.ID))
	}
	f.propose(&command.ApplyPlans{Plans: []command.PlanCommit{plan}, Time: f.now.UnixNano()})
	u := &command.UpdateAllocs{Time: f.now.UnixNano()}
	for _, n := range f.nodes {
		if list := updates[n.ID]; list != nil {
			u.Nodes = append(u.Nodes, command.NodeUpdates{NodeID: n.ID, Updates: list})
		}
	}
	f.propose(u)
}

// plan places the allocations on nodes that are spread by two primes. It asks no scheduler, as that would be measured
// too.
func (f *filler) plan(i int, j *drover.Job, eval *drover.Evaluation, count int) command.PlanCommit {
	p := command.PlanCommit{EvalID: eval.ID, Job: j}
	resources := &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{"task": {
		Cpu: drover.AllocatedCpuResources{CpuShares: 100}, Memory: drover.AllocatedMemoryResources{MemoryMB: 128},
	}}, Shared: drover.AllocatedSharedResources{DiskMB: 300}}
	metrics := &drover.AllocationMetric{
		NodesEvaluated: len(f.nodes), NodesInPool: len(f.nodes),
		NodesAvailable: map[string]int{"dc1": len(f.nodes)},
	}
	for k := range count {
		n := f.nodes[(i*7919+k*31)%len(f.nodes)]
		r := resources
		if i%4 == 0 {
			own := *resources
			own.Shared.Ports = []network.PortMapping{{Label: "http", Value: network.MinDynamicPort + k, HostIP: "10.0.0.1"}}
			r = &own
		}
		p.Placed = append(p.Placed, &drover.Allocation{
			ID: f.ids.New(), Namespace: eval.Namespace, EvalID: eval.ID, Name: fmt.Sprintf("%s.group[%d]", eval.JobID, k),
			NodeID: n.ID, NodeName: n.Name, JobID: eval.JobID, TaskGroup: "group", AllocatedResources: r, Metrics: metrics,
		})
	}
	return p
}

// running is what an agent reports of a task that it started, with the events that a real one has.
func (f *filler) running(allocID string) exchange.AllocUpdate {
	state := &drover.TaskState{State: "running", StartedAt: f.now}
	for i, e := range [][2]string{
		{drover.TaskReceived, "Task received by client"},
		{drover.TaskSetup, "Building Task Directory"},
		{drover.TaskStarted, "Task started by client"},
	} {
		state.Events = append(state.Events, &drover.TaskEvent{
			Type: e[0], DisplayMessage: e[1], Time: f.now.UnixNano() + int64(i), Details: map[string]string{},
		})
	}
	return exchange.AllocUpdate{
		ID: allocID, ClientStatus: drover.AllocClientRunning, ClientDescription: "Tasks are running", Time: f.now.UnixNano(),
		TaskStates: map[string]*drover.TaskState{"task": state},
	}
}
