package intake

import (
	"context"
	"crypto/x509"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/registry"
)

// Log commits commands; *raftlog.Log satisfies it.
type Log interface {
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
}

// Images asks registries; *registry.Client satisfies it.
type Images interface {
	// Resolve returns the digest of what the name means now. Errors: as registry.Error has them, with the name.
	Resolve(ctx context.Context, ref string, a registry.Account) (digest string, err error)
}

// Deps is what an Intake needs.
type Deps struct {
	Log   Log
	Store *store.Store
	Clock clock.Clock
	IDs   id.Source // used by several goroutines at once
	// Collect removes everything that garbage collection may remove, whatever its age (leader.Leader.CollectGarbage).
	Collect func(ctx context.Context) error
	// MaxSource bounds the text of a job that is kept, in bytes; larger ones are left out with a warning. Nil:
	// drover.MaxJobSource, 0: none is kept.
	MaxSource *int
	// MaxCount is how many allocations a job may ask for, but for system jobs. Nil: drover.DefaultMaxCount, 0:
	// drover.MaxGroupCount.
	MaxCount *int
	// Versions of a job are kept, beside tagged ones and the newest stable one; 0 = drover.TrackedJobVersions.
	Versions int
	// DefaultPriority is that of jobs which say none; 0 = drover.DefaultPriority.
	DefaultPriority int
	// MaxPriority is the highest of jobs and of evaluations that are asked for; 0 = drover.DefaultMaxPriority.
	MaxPriority int
	// Region is this server's; "" = drover.DefaultRegion.
	Region string
	// ServiceProvider is that of services which name none; "" = drover's own.
	ServiceProvider string
	// Images says which digest the name of an image has now, for namespaces that pin them; nil: nobody does.
	Images Images
	// Judged, if set, is told of each admission rule, with its level, that is against a job of which something would begin.
	Judged func(rule, level string)
	// OwnCertificate is what this server shows to others; nil, also as its answer: none.
	OwnCertificate func() *x509.Certificate
}

// Intake is safe for use by several goroutines.
type Intake struct {
	deps Deps

	admission compiledRules

	drains chan struct{} // has a place for each plan of a drain that is made at a time

	dispatching sync.Mutex // held from the look for a token's child to its registration, where the log does not decide
}

// New returns an Intake.
func New(deps Deps) *Intake { return &Intake{deps: deps, drains: make(chan struct{}, maxDrainPlans)} }

// now is the time of the injected clock; nothing here reads the system's.
func (in *Intake) now() time.Time { return in.deps.Clock.Now() }

// maker makes evaluations with the present time as their creation time.
func (in *Intake) maker() trigger.Maker {
	return trigger.Maker{IDs: in.deps.IDs, Now: in.now().UnixNano()}
}

// job returns the stored job. Errors: NotFound.
func (in *Intake) job(namespace, id string) (*drover.Job, error) {
	if j := in.deps.Store.Snapshot().Job(namespace, id); j != nil {
		return j, nil
	}
	return nil, drover.Errorf(drover.NotFound, "job not found")
}

// node returns the stored node. Errors: NotFound.
func (in *Intake) node(id string) (*drover.Node, error) {
	if n := in.deps.Store.Snapshot().Node(id); n != nil {
		return n, nil
	}
	return nil, drover.Errorf(drover.NotFound, "node not found")
}

// propose commits c and returns its index.
func (in *Intake) propose(ctx context.Context, c command.Command) (drover.Outcome, error) {
	index, _, err := in.deps.Log.Propose(ctx, c)
	return drover.Outcome{Index: index}, err
}

// proposeWith commits c, which holds the evaluations.
func (in *Intake) proposeWith(ctx context.Context, c command.Command, evals ...*drover.Evaluation) (drover.Outcome, error) {
	o, err := in.propose(ctx, c)
	if err != nil {
		return o, err
	}
	for _, e := range evals {
		if e != nil {
			o.EvalIDs = append(o.EvalIDs, e.ID)
		}
	}
	if len(o.EvalIDs) > 0 {
		o.EvalID, o.EvalCreateIndex = o.EvalIDs[0], o.Index
	}
	return o, nil
}
