package large

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/insight"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/httpapi/web"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/server/execseam"
)

// Config says how large a cluster is.
type Config struct {
	Nodes, Jobs, Allocations int
	// Attention is what of it wants attention; nil: it is judged for each who asks.
	Attention func(s *store.Store) func(ctx context.Context, v cluster.Viewer) (cluster.Attention, error)
}

// Cluster is a large one.
type Cluster struct {
	Store   *store.Store
	Events  *eventstream.Buffer
	Handler http.Handler // of all faces

	mu     sync.Mutex
	index  uint64               // guarded by mu
	allocs []*drover.Allocation // guarded by mu
	now    int64                // guarded by mu: unix ns
}

// leads is an agent that says who leads. Nothing else is asked of it.
type leads struct{ nomad.Agent }

// Leader implements nomad.Agent.
func (leads) Leader() string { return "127.0.0.1:4647" }

// New makes one: nodes in three pools and datacenters and five classes, some of them not well, and jobs whose allocations are spread.
func New(cfg Config) *Cluster {
	c := &Cluster{Store: store.New(), Events: eventstream.New(eventstream.Config{}), index: 1, now: 1_790_000_000_000_000_000}
	c.fill(cfg)
	topology := func(context.Context) (*cluster.Topology, error) { return insight.TopologyOf(c.Store.Snapshot()), nil }
	attention := func(_ context.Context, v cluster.Viewer) (cluster.Attention, error) {
		return insight.Judge(insight.Facts{Now: clock.Wall{}.Now(), State: c.Store.Snapshot()}).For(v), nil
	}
	if cfg.Attention != nil {
		attention = cfg.Attention(c.Store)
	}
	quiet := slog.New(slog.DiscardHandler)
	page := &web.Face{Clock: clock.Wall{}}
	page.API = httpapi.Handler(httpapi.Config{Logger: quiet, Clock: clock.Wall{}},
		nomad.New(nomad.Config{
			State: execseam.State{Store: c.Store}, Events: execseam.Events{Buffer: c.Events}, Agent: leads{}, Clock: clock.Wall{},
			ID: id.NewSeeded(1), Logger: quiet,
		}),
		native.New(native.Config{}, native.Deps{Attention: attention, Topology: topology, Clock: clock.Wall{}, Log: quiet}), page)
	c.Handler = page.API
	return c
}

func (c *Cluster) fill(cfg Config) {
	ids := id.NewSeeded(1)
	tx := c.Store.Begin(c.index)
	nodes := make([]*drover.Node, cfg.Nodes)
	for i := range nodes {
		n := &drover.Node{
			ID: ids.New(), Name: fmt.Sprintf("node-%05d", i), Datacenter: fmt.Sprintf("dc%d", i%3),
			NodePool:  []string{"default", "gpu", "batch"}[i%7%3],
			NodeClass: fmt.Sprintf("class-%d", i%5), Status: drover.NodeStatusReady, SchedulingEligibility: drover.NodeEligible,
			NodeResources: &drover.NodeResources{
				Cpu: drover.NodeCpuResources{CpuShares: 16_000, TotalCpuCores: 8}, Memory: drover.NodeMemoryResources{MemoryMB: 32_000},
				Disk: drover.NodeDiskResources{DiskMB: 200_000},
			},
			Attributes: map[string]string{"nomad.version": "1.0"}, Meta: map[string]string{"rack": fmt.Sprintf("r%d", i%50)},
		}
		switch {
		case i%97 == 13:
			n.Status = drover.NodeStatusDown
		case i%89 == 7:
			n.SchedulingEligibility = drover.NodeIneligible
		case i%83 == 3:
			n.Drain, n.SchedulingEligibility = true, drover.NodeIneligible
		}
		nodes[i] = n
		tx.PutNode(n)
	}
	jobs := make([]*drover.Job, cfg.Jobs)
	for i := range jobs {
		jobs[i] = &drover.Job{
			ID: fmt.Sprintf("job-%05d", i), Name: fmt.Sprintf("job-%05d", i), Type: drover.JobTypeService, Status: drover.JobStatusRunning,
			SubmitTime: c.now + int64(i),
			TaskGroups: []*drover.TaskGroup{{Name: "group", Tasks: []*drover.Task{{Name: "task", Driver: "mock_driver"}}}},
		}
		jobs[i].Canonicalize()
		if i%10 == 9 {
			jobs[i].Status = drover.JobStatusDead
		}
		tx.PutJob(jobs[i])
	}
	for i := range cfg.Allocations {
		j, n := jobs[i%len(jobs)], nodes[i*31%len(nodes)]
		a := &drover.Allocation{
			ID: ids.New(), Namespace: j.Namespace, EvalID: "e", Name: fmt.Sprintf("%s.group[%d]", j.ID, i/len(jobs)), NodeID: n.ID,
			NodeName: n.Name, JobID: j.ID, Job: j, TaskGroup: "group", DesiredStatus: drover.AllocDesiredRun,
			ClientStatus: drover.AllocClientRunning, CreateIndex: uint64(2 + i/100), ModifyIndex: uint64(2 + i/100), CreateTime: c.now + int64(i),
			AllocatedResources: &drover.AllocatedResources{Tasks: map[string]*drover.AllocatedTaskResources{"task": {
				Cpu:    drover.AllocatedCpuResources{CpuShares: int64(100 + i%17*100)},
				Memory: drover.AllocatedMemoryResources{MemoryMB: int64(128 + i%29*64)},
			}}},
			TaskStates: map[string]*drover.TaskState{"task": {State: "running", StartedAt: time.Unix(0, c.now)}},
		}
		if i%20 == 19 {
			a.ClientStatus = drover.AllocClientFailed
		}
		c.allocs = append(c.allocs, a)
		tx.PutAllocation(a)
	}
	tx.Commit()
	c.index = uint64(10 + cfg.Allocations/100)
}

// Change changes an allocation, as its node's report does, and publishes that, or in turn what else changes where there is much work.
func (c *Cluster) Change() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index++
	c.now++
	at := int(c.index) % len(c.allocs)
	a := *c.allocs[at]
	a.ModifyIndex, a.ModifyTime = c.index, c.now
	c.allocs[at] = &a
	tx := c.Store.Begin(c.index)
	tx.PutAllocation(&a)
	tx.Commit()
	e := drover.Event{
		Topic: drover.TopicAllocation, Type: "AllocationUpdated", Key: a.ID, Namespace: a.Namespace, Index: c.index,
		Payload: map[string]any{"Allocation": &a},
	}
	switch c.index % 3 {
	case 1:
		e.Topic, e.Type, e.Key = drover.TopicJob, "JobRegistered", a.JobID
	case 2:
		e.Topic, e.Type, e.Key = drover.TopicEvaluation, "EvaluationUpdated", a.EvalID
	}
	c.Events.Events(drover.Events{Index: c.index, Events: []drover.Event{e}})
}
