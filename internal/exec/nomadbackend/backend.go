package nomadbackend

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/wake"
)

// Config of a Backend.
type Config struct {
	Cluster
	// Environments are options of the jobs made for environments.
	Environments environment.Options
}

// Cluster is an existing Nomad cluster. The configuration's has the same fields and is converted to it, so that a field which only one
// of the two has does not compile.
type Cluster struct {
	Address   string // of the cluster's HTTP API, as in "https://nomad:4646"
	Token     string
	Region    string
	Namespace string // default "default"
	CAFile    string
	CertFile  string
	KeyFile   string
	Driver    string // runs environments that name none or "sandbox"; default "docker"
}

// Deps of a Backend.
type Deps struct {
	Clock clock.Clock
	IDs   id.Source
	Log   *slog.Logger
}

// Backend is an execution service's cluster.
type Backend struct {
	cfg    Config
	deps   Deps
	client *api.Client
	synced chan struct{} // closed when the cluster was read for the first time
	dirty  wake.Signal   // pools are to be looked at

	mu        sync.Mutex // guards what follows
	connected bool
	envs      map[string]*env
	runners   map[string]*runnerJob // by Nomad's job id
	allocs    map[string]*drover.Allocation
	sessions  map[*session]struct{}
	ended     []string // allocations, oldest first
	index     uint64
	events    []drover.Events // the last ones
	changed   wake.Broadcast  // there is another event
}

var _ runner.Intake = (*Backend)(nil)

// env is an environment as a job of ours, and what its pool needs now.
type env struct {
	job         *drover.Job // of environment.ToJob
	environment execution.Environment
	generation  string
	failures    int       // in a row
	notBefore   time.Time // of the next start
}

// runnerJob is a runner's job on the cluster.
type runnerJob struct {
	id         string
	env        string
	generation string
	job        *api.Job // as registered
	index      uint64   // its JobModifyIndex; 0 while it is being registered
	claim      *drover.Claim
	recorded   bool // the claim is in Nomad
	allocID    string
	ending     bool
}

// New returns a Backend; it reaches nobody yet. Errors: Invalid.
func New(cfg Config, deps Deps) (*Backend, error) {
	if cfg.Namespace == "" {
		cfg.Namespace = drover.DefaultNamespace
	}
	if cfg.Driver == "" {
		cfg.Driver = "docker"
	}
	client, err := api.NewClient(&api.Config{
		Address: cfg.Address, SecretID: cfg.Token, Region: cfg.Region, Namespace: cfg.Namespace,
		TLSConfig: &api.TLSConfig{CACert: cfg.CAFile, ClientCert: cfg.CertFile, ClientKey: cfg.KeyFile},
	})
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "exec.nomad: %w", err)
	}
	return &Backend{
		cfg: cfg, deps: deps, client: client, synced: make(chan struct{}), dirty: wake.NewSignal(),
		envs: map[string]*env{}, runners: map[string]*runnerJob{}, allocs: map[string]*drover.Allocation{}, sessions: map[*session]struct{}{},
	}, nil
}

// Run follows the cluster and keeps the pools, until ctx ends.
func (b *Backend) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { b.keepPools(ctx) }) // ends with ctx
	b.follow(ctx)
	loops.Wait()
	return nil
}

// Synced is closed when the cluster was read for the first time; only then the execution service may start.
func (b *Backend) Synced() <-chan struct{} { return b.synced }

// Await waits for that, or until ctx ends.
func (b *Backend) Await(ctx context.Context) error {
	select {
	case <-b.synced:
	case <-ctx.Done():
	}
	return nil
}

// Workloads reaches the runners, wherever they are. Errors: Unavailable while the cluster is away.
func (b *Backend) Workloads(string) (exchange.Workloads, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.connected {
		return nil, drover.Errorf(drover.Unavailable, "the Nomad cluster at %s is away", b.cfg.Address)
	}
	return &workloads{b: b}, nil
}

// query are the options of reads. All requests name the namespace, although the client has one: its options replace
// that.
func (b *Backend) query(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{Namespace: b.cfg.Namespace}).WithContext(ctx)
}

// write are the options of writes.
func (b *Backend) write(ctx context.Context) *api.WriteOptions {
	return (&api.WriteOptions{Namespace: b.cfg.Namespace}).WithContext(ctx)
}
