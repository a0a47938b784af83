package nomad_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/assignment"
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	clustergroup "github.com/drover-project/drover/internal/httpapi/nomad/cluster"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/agent"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/rawexec"
	"github.com/drover-project/drover/internal/telemetry"
	"github.com/drover-project/drover/tenancy"
)

// cluster is one server and one node in this process, made of the real pieces, behind the face.
type cluster struct {
	store  *store.Store
	events *eventstream.Buffer
	agent  *agent.Agent
	client *api.Client
	url    string
	dir    string
}

// realIntake makes the face's types of the intake's, which are the same but for their package.
type realIntake struct{ *intake.Intake }

type realEvents struct{ *eventstream.Buffer }

func (e realEvents) Subscribe(topics map[string][]string, namespace string, index uint64) (clustergroup.Subscription, error) {
	return e.Buffer.Subscribe(eventstream.Request{Topics: topics, Namespace: namespace, Index: index})
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	c := &cluster{store: store.New(), events: eventstream.New(eventstream.Config{}), dir: t.TempDir()}
	wall, ids := clock.Wall{}, id.Random{}
	var in *intake.Intake
	lead := leader.New(leader.Config{}, leader.Deps{
		Store: c.store, Clock: wall, IDs: ids, Logger: log,
		Launch: func(ctx context.Context, ns, job string, at time.Time) error {
			_, err := in.LaunchPeriodic(ctx, ns, job, at)
			return err
		},
	})
	machine := fsm.New(c.store, fsm.Observers{lead, c.events})
	raft, err := raftlog.Open(raftlog.Config{}, raftlog.Deps{FSM: machine, Log: log, Clock: wall})
	require.NoError(t, err)
	require.NoError(t, raft.WaitLeader(t.Context()))
	in = intake.New(intake.Deps{Log: raft, Store: c.store, Clock: wall, IDs: ids, Collect: lead.CollectGarbage})
	control := assignment.New(assignment.Deps{Log: raft, Store: c.store, Leader: lead, Clock: wall, IDs: ids, Logger: log})
	exe, err := os.Executable()
	require.NoError(t, err)
	c.agent, err = agent.New(agent.Config{DataDir: filepath.Join(c.dir, "data"), InMemory: true, StopOnExit: true, Name: "n1"}, agent.Deps{
		Controller: control, Clock: wall, IDs: ids, Log: log,
		Drivers: []driver.Driver{rawexec.New(rawexec.Config{Enabled: true, Binary: exe, CoreMHz: 2000, Clock: wall, Log: log})},
	})
	require.NoError(t, err)
	ring := telemetry.NewRing(log.Handler())
	face := nomad.New(nomad.Config{
		State: storeState{c.store}, Intake: realIntake{in}, Nodes: c, Events: realEvents{c.events},
		Agent: &fakeAgent{ring: ring, metrics: telemetry.NewMetrics(wall)}, Clock: wall, ID: ids, Logger: log,
		DiffJobs: func(old, now *drover.Job) any { return intake.Diff(old, now) },
	})
	srv := httptest.NewServer(httpapi.Handler(httpapi.Config{Logger: log, Clock: wall}, face))
	c.url = srv.URL
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = lead.Run(ctx, raft) }) // these end with cancel
	node, stopNode := context.WithCancel(context.Background())
	var nodePart sync.WaitGroup
	nodePart.Go(func() { _ = c.agent.Run(node) }) // ends with stopNode
	t.Cleanup(func() {
		stopNode()
		nodePart.Wait()
		srv.Close()
		cancel()
		parts.Wait()
		_ = raft.Barrier(context.Background()) // what is still proposed is answered: raft forgets some of it when it closes
		_ = raft.Close()
	})
	c.client, err = api.NewClient(&api.Config{Address: srv.URL})
	require.NoError(t, err)
	return c
}

// Workloads makes the cluster its own Nodes.
func (c *cluster) Workloads(node string) (exchange.Workloads, error) {
	if node != c.agent.NodeID() {
		return nil, drover.Errorf(drover.Unavailable, "node %s is not connected", node)
	}
	return c.agent, nil
}

func (i realIntake) RegisterJob(ctx context.Context, r drover.RegisterRequest) (drover.Outcome, error) {
	o, err := i.Intake.RegisterJob(ctx, drover.RegisterRequest(r))
	return drover.Outcome(o), err
}

func (i realIntake) DeregisterJob(ctx context.Context, r drover.DeregisterRequest) (drover.Outcome, error) {
	o, err := i.Intake.DeregisterJob(ctx, drover.DeregisterRequest(r))
	return drover.Outcome(o), err
}

func (i realIntake) PlanJob(ctx context.Context, job *drover.Job, diff bool) (drover.Preview, error) {
	p, err := i.Intake.PlanJob(ctx, job, diff)
	return drover.Preview(p), err
}

func (i realIntake) EvaluateJob(ctx context.Context, ns, id string, force bool) (drover.Outcome, error) {
	o, err := i.Intake.EvaluateJob(ctx, ns, id, force)
	return drover.Outcome(o), err
}

func (i realIntake) ScaleJob(ctx context.Context, r drover.ScaleRequest) (drover.Outcome, error) {
	o, err := i.Intake.ScaleJob(ctx, drover.ScaleRequest(r))
	return drover.Outcome(o), err
}

func (i realIntake) RevertJob(ctx context.Context, r drover.RevertRequest) (drover.Outcome, error) {
	o, err := i.Intake.RevertJob(ctx, drover.RevertRequest(r))
	return drover.Outcome(o), err
}

func (i realIntake) SetJobStable(ctx context.Context, ns, id string, v uint64, stable bool) (drover.Outcome, error) {
	o, err := i.Intake.SetJobStable(ctx, ns, id, v, stable)
	return drover.Outcome(o), err
}

func (i realIntake) DispatchJob(ctx context.Context, r drover.DispatchRequest) (drover.Outcome, error) {
	o, err := i.Intake.DispatchJob(ctx, drover.DispatchRequest(r))
	return drover.Outcome(o), err
}

func (i realIntake) ForcePeriodic(ctx context.Context, ns, id string) (drover.Outcome, error) {
	o, err := i.Intake.ForcePeriodic(ctx, ns, id)
	return drover.Outcome(o), err
}

func (i realIntake) StopAllocation(ctx context.Context, id string, noDelay, reschedule bool) (drover.Outcome, error) {
	o, err := i.Intake.StopAllocation(ctx, id, noDelay, reschedule)
	return drover.Outcome(o), err
}

func (i realIntake) SetEligibility(ctx context.Context, node, e string) (drover.Outcome, error) {
	o, err := i.Intake.SetEligibility(ctx, node, e)
	return drover.Outcome(o), err
}

func (i realIntake) DrainNode(ctx context.Context, r drover.DrainRequest) (drover.Outcome, error) {
	o, err := i.Intake.DrainNode(ctx, drover.DrainRequest(r))
	return drover.Outcome(o), err
}

func (i realIntake) EvaluateNode(ctx context.Context, node string) (drover.Outcome, error) {
	o, err := i.Intake.EvaluateNode(ctx, node)
	return drover.Outcome(o), err
}

func (i realIntake) PurgeNode(ctx context.Context, node string) (drover.Outcome, error) {
	o, err := i.Intake.PurgeNode(ctx, node)
	return drover.Outcome(o), err
}

func (i realIntake) TagJobVersion(ctx context.Context, r drover.TagRequest) (drover.Outcome, error) {
	o, err := i.Intake.TagJobVersion(ctx, drover.TagRequest(r))
	return drover.Outcome(o), err
}

func (i realIntake) UntagJobVersion(ctx context.Context, ns, id, name string) (drover.Outcome, error) {
	o, err := i.Intake.UntagJobVersion(ctx, ns, id, name)
	return drover.Outcome(o), err
}

func (i realIntake) DeleteEvaluations(ctx context.Context, ids []string) (drover.Outcome, error) {
	o, err := i.Intake.DeleteEvaluations(ctx, ids)
	return drover.Outcome(o), err
}

func (i realIntake) SetNodeMeta(ctx context.Context, node string, change map[string]*string) (drover.Outcome, error) {
	o, err := i.Intake.SetNodeMeta(ctx, node, change)
	return drover.Outcome(o), err
}

func (i realIntake) UpsertNamespace(ctx context.Context, n *tenancy.Namespace) (drover.Outcome, error) {
	o, err := i.Intake.UpsertNamespace(ctx, n)
	return drover.Outcome(o), err
}

func (i realIntake) DeleteNamespace(ctx context.Context, name string) (drover.Outcome, error) {
	o, err := i.Intake.DeleteNamespace(ctx, name)
	return drover.Outcome(o), err
}

func (i realIntake) UpsertNodePool(ctx context.Context, p *drover.NodePool) (drover.Outcome, error) {
	o, err := i.Intake.UpsertNodePool(ctx, p)
	return drover.Outcome(o), err
}

func (i realIntake) DeleteNodePool(ctx context.Context, name string) (drover.Outcome, error) {
	o, err := i.Intake.DeleteNodePool(ctx, name)
	return drover.Outcome(o), err
}

func (i realIntake) SetSchedulerConfig(ctx context.Context, c drover.SchedulerConfiguration, cas bool) (bool, drover.Outcome, error) {
	updated, o, err := i.Intake.SetSchedulerConfig(ctx, c, cas)
	return updated, drover.Outcome(o), err
}

func (i realIntake) PromoteDeployment(ctx context.Context, id string, groups []string) (drover.Outcome, error) {
	o, err := i.Intake.PromoteDeployment(ctx, id, groups)
	return drover.Outcome(o), err
}

func (i realIntake) FailDeployment(ctx context.Context, id string) (drover.Outcome, error) {
	o, err := i.Intake.FailDeployment(ctx, id)
	return drover.Outcome(o), err
}

func (i realIntake) PauseDeployment(ctx context.Context, id string, pause bool) (drover.Outcome, error) {
	o, err := i.Intake.PauseDeployment(ctx, id, pause)
	return drover.Outcome(o), err
}

func (i realIntake) UnblockDeployment(ctx context.Context, id string) (drover.Outcome, error) {
	o, err := i.Intake.UnblockDeployment(ctx, id)
	return drover.Outcome(o), err
}

func (i realIntake) SetAllocHealth(ctx context.Context, id string, h, u []string) (drover.Outcome, error) {
	o, err := i.Intake.SetAllocHealth(ctx, id, h, u)
	return drover.Outcome(o), err
}
