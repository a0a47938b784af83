package nomad_test

import (
	"context"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	clustergroup "github.com/drover-project/drover/internal/httpapi/nomad/cluster"
	keysgroup "github.com/drover-project/drover/internal/httpapi/nomad/keys"
	nodesgroup "github.com/drover-project/drover/internal/httpapi/nomad/nodes"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/supervisor/guest/server"
	"github.com/drover-project/drover/internal/telemetry"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

func TestMain(m *testing.M) {
	if os.Args[0] == "drover-init" { // the test program is its own supervisor
		os.Exit(server.Main())
	}
	goleak.VerifyTestMain(m,
		// Nomad's client keeps idle connections in a transport that it does not give away.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("github.com/hashicorp/nomad/api.(*Agent).monitorHelper.func1"))
}

const (
	nodeID  = "11111111-2222-4333-8444-555555555555"
	allocID = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
	evalID  = "eeeeeeee-bbbb-4ccc-8ddd-000000000001"
	deplID  = "dddddddd-bbbb-4ccc-8ddd-000000000001"
)

// fixed is the time of everything in a world.
var fixed = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

// world is a face over a real store, with fakes around it.
type world struct {
	t        *testing.T
	store    *store.Store
	intake   *fakeIntake
	node     *fakeNode
	events   *fakeEvents
	agent    *fakeAgent
	archives *fakeArchives
	cfg      nomad.Config
	handler  http.Handler
	url      string
	client   *api.Client
}

type storeState struct{ *store.Store }

func (s storeState) Snapshot() answer.Snapshot { return s.Store.Snapshot() }

// newWorld serves a cluster with a node, a job "web" with a running allocation, its evaluation and its deployment.
func newWorld(t *testing.T, change ...func(*nomad.Config)) *world {
	t.Helper()
	return newWorldOf(t, nil, change...)
}

// newWorldOf is newWorld where the resolver says what callers may do.
func newWorldOf(t *testing.T, resolver httpapi.Resolver, change ...func(*nomad.Config)) *world {
	t.Helper()
	w := &world{t: t, store: store.New(), node: newFakeNode(), events: newFakeEvents(), archives: &fakeArchives{text: "state"}}
	w.intake = &fakeIntake{store: w.store}
	ring := telemetry.NewRing(slog.DiscardHandler)
	w.agent = &fakeAgent{ring: ring, metrics: telemetry.NewMetrics(clock.Wall{})}
	w.cfg = nomad.Config{
		State: storeState{w.store}, Intake: w.intake, Nodes: w, Events: w.events, Agent: w.agent, Archives: w.archives, Clock: clock.Wall{},
		ID: id.Random{}, Logger: slog.New(ring), Pprof: true, ACL: accessOf(w.store),
		Keys: keysgroup.Config{Keyring: fakeKeys{w.store}}, Vars: variablesOf(w.store),
		Introductions: nodesgroup.Introductions{Introducer: introducer{}, DefaultTTL: time.Minute, MaxTTL: time.Hour},
	}
	for _, f := range change {
		f(&w.cfg)
	}
	w.seed()
	w.handler = httpapi.Handler(httpapi.Config{
		Logger: w.cfg.Logger, Clock: clock.Wall{}, Resolver: resolver, StreamCheck: 10 * time.Millisecond,
	}, nomad.New(w.cfg))
	var serving sync.WaitGroup // also those that hijacked their connection, which the server does not wait for
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		w.handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		srv.Close()
		serving.Wait()
	})
	w.url = srv.URL
	client, err := api.NewClient(&api.Config{Address: srv.URL})
	require.NoError(t, err)
	w.client = client
	return w
}

// Workloads makes the world its own Nodes.
func (w *world) Workloads(node string) (exchange.Workloads, error) {
	if node != nodeID {
		return nil, drover.Errorf(drover.Unavailable, "node %s is not connected", node)
	}
	return w.node, nil
}

// put commits one entry.
func (w *world) put(change func(*store.Txn)) uint64 { return put(w.store, change) }

func put(s *store.Store, change func(*store.Txn)) uint64 {
	index := s.Index() + 1
	t := s.Begin(index)
	change(t)
	t.Commit()
	return index
}

func (w *world) seed() {
	job := webJob("web")
	job.CreateIndex, job.ModifyIndex, job.JobModifyIndex = 10, 10, 10
	stamp := fixed.UnixNano()
	t := w.store.Begin(10)
	t.PutNode(&drover.Node{
		ID: nodeID, Name: "n1", Datacenter: "dc1", NodePool: "default", NodeClass: "big", Status: drover.NodeStatusReady,
		SchedulingEligibility: drover.NodeEligible, SecretID: "must never be shown", CreateIndex: 10, ModifyIndex: 10,
		Attributes: map[string]string{"os.name": "debian"}, NodeResources: &drover.NodeResources{Cpu: drover.NodeCpuResources{CpuShares: 4000}},
	})
	t.PutJob(job)
	t.PutEvaluation(&drover.Evaluation{
		ID: evalID, Namespace: "default", JobID: "web", Type: "service", Priority: 50,
		Status: drover.EvalComplete, TriggeredBy: drover.TriggerJobRegister, CreateIndex: 10, ModifyIndex: 10,
		CreateTime: stamp, ModifyTime: stamp,
	})
	t.PutDeployment(&drover.Deployment{
		ID: deplID, Namespace: "default", JobID: "web", JobCreateIndex: 10, Status: drover.DeploymentRunning,
		TaskGroups: map[string]*drover.DeploymentState{"g": {DesiredTotal: 1}}, CreateIndex: 10, ModifyIndex: 10,
	})
	t.PutAllocation(&drover.Allocation{
		ID: allocID, Namespace: "default", EvalID: evalID, Name: "web.g[0]", NodeID: nodeID, NodeName: "n1", JobID: "web",
		Job: job, TaskGroup: "g", DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientRunning, DeploymentID: deplID,
		TaskStates:         map[string]*drover.TaskState{"t": {State: drover.TaskStateRunning, StartedAt: fixed}},
		AllocatedResources: &drover.AllocatedResources{Shared: drover.AllocatedSharedResources{DiskMB: 300}},
		CreateIndex:        10, ModifyIndex: 10, AllocModifyIndex: 10, CreateTime: stamp, ModifyTime: stamp,
	})
	t.Commit()
}

func webJob(name string) *drover.Job {
	j := &drover.Job{ID: name, Type: drover.JobTypeService, Meta: map[string]string{"team": "a"}, TaskGroups: []*drover.TaskGroup{{
		Name: "g", Scaling: &drover.ScalingPolicy{Min: new(int64(1)), Max: new(int64(5))},
		Tasks: []*drover.Task{{Name: "t", Driver: "raw_exec", Config: map[string]any{"command": "/bin/serve", "image": "img:1"}}},
	}}}
	j.Canonicalize()
	j.Status = drover.JobStatusRunning
	return j
}

// do sends a bare request to the handler.
func (w *world) do(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1"
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

// fakeEvents is a stream that tests feed.
type fakeEvents struct {
	mu    sync.Mutex
	lines chan any // drover.Events or error
	asked chan string
	err   error
}

func newFakeEvents() *fakeEvents {
	return &fakeEvents{lines: make(chan any, 16), asked: make(chan string, 16)}
}

func (e *fakeEvents) Subscribe(topics map[string][]string, namespace string, index uint64) (clustergroup.Subscription, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e, e.err
}
func (e *fakeEvents) Close() {}
func (e *fakeEvents) Next(ctx context.Context) (drover.Events, error) {
	select { // what is there comes before the end of the context, as in an eventstream.Subscription
	case l := <-e.lines:
		return told(l)
	default:
	}
	select {
	case l := <-e.lines:
		return told(l)
	case <-ctx.Done():
		return drover.Events{}, drover.Errorf(drover.Canceled, "waiting for events: %w", context.Cause(ctx))
	}
}

func told(line any) (drover.Events, error) {
	if err, ok := line.(error); ok {
		return drover.Events{}, err
	}
	return line.(drover.Events), nil
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
