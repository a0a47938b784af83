package fleet

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
)

// Fleet is what the face needs. Errors: NotFound, Invalid, Conflict, Unavailable.
type Fleet interface {
	Pools
	Machines
	Books
}

// Pools is what can be done with pools.
type Pools interface {
	Pools(ctx context.Context) ([]fleet.PoolStatus, error)
	Pool(ctx context.Context, name string) (fleet.PoolStatus, error)
	PutPool(ctx context.Context, policy *fleet.Policy) error
	ReplacePool(ctx context.Context, policy *fleet.Policy, was uint64) error
	DeletePool(ctx context.Context, name string) error
	Pause(ctx context.Context, name string, pause fleet.Pause) error
	// Apply makes the pools of the configuration those of a file, or says what that would change.
	Apply(ctx context.Context, ask fleet.Application) (fleet.Applied, error)
}

// Machines is what can be done with machines.
type Machines interface {
	Instances(ctx context.Context, pool string) ([]fleet.Instance, error)
	Behave(ctx context.Context, id string, behavior fleet.IdleBehavior, reason string) error
	Kill(ctx context.Context, id, reason string) error
	// Interrupt tells that the cloud takes the machine back at a time.
	Interrupt(ctx context.Context, id string, at time.Time) error
}

// Books tell what the fleet would do, does and did, why, and for how much.
type Books interface {
	Plan(ctx context.Context, pool string) ([]fleet.Plan, error)
	Waiting(ctx context.Context, pool string) ([]fleet.Waiting, error)
	Explain(ctx context.Context, id string) (fleet.Explanation, error)
	Audit(ctx context.Context, pool, instance string, most int) ([]fleet.Audit, error)
	Costs(ctx context.Context, from, by string) (fleet.CostReport, error)
	Timeline(ctx context.Context, pool string, since time.Duration, most int) (fleet.Timeline, error)
}

// Work is what runs, for Arvados' paths.
type Work interface {
	// Running returns the allocations that are on the fleet's machines.
	Running(ctx context.Context) ([]*drover.Allocation, error)
	// StopAllocation stops one, without a replacement. Errors: NotFound.
	StopAllocation(ctx context.Context, id, reason string) error
}

// Face serves the fleet.
type Face struct {
	Fleet   Fleet
	Work    Work
	Metrics http.Handler
	// Simulate tries a policy on virtual time, until ctx ends; nil: this program cannot. Errors: Invalid.
	Simulate func(ctx context.Context, ask fleet.Simulation) ([]fleet.Simulated, error)
	Clock    clock.Clock

	simulating sync.Mutex // held while a simulation runs
}

// WriteError serves httpapi.Face.
func (f *Face) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	status, code := httpapi.Status(err), drover.CodeOf(err)
	if status == http.StatusMethodNotAllowed {
		code = drover.Invalid
	}
	var body any = map[string]string{"code": code.String(), "message": httpapi.Message(err)}
	if strings.HasPrefix(r.URL.Path, "/arvados/") || strings.HasPrefix(r.URL.Path, "/_health/") {
		body = map[string][]string{"errors": {httpapi.Message(err)}}
	}
	_ = httpapi.WriteJSON(w, r, status, body) // strings only
}

// metrics answers in Prometheus' text format, whatever the query asks for.
func (f *Face) metrics(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	q.Set("format", "prometheus")
	r.URL.RawQuery = q.Encode()
	f.Metrics.ServeHTTP(w, r)
	return nil
}

// metricsJSON answers in the format that the query asks for, JSON by default.
func (f *Face) metricsJSON(w http.ResponseWriter, r *http.Request) error {
	f.Metrics.ServeHTTP(w, r)
	return nil
}

// ping answers as Arvados' health checks want it. It says that this process serves requests, and nothing about the
// clouds.
func (f *Face) ping(w http.ResponseWriter, r *http.Request) error {
	return httpapi.WriteJSON(w, r, http.StatusOK, map[string]string{"health": "OK"})
}
