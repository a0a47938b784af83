package runner

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
)

// Snapshot is what is read of the state; control's store has it. quota.Accounts is an optional power of it.
type Snapshot interface {
	Index() uint64
	Job(namespace, id string) *drover.Job
	Jobs(namespace, prefix string) iter.Seq[*drover.Job]
	Allocation(id string) *drover.Allocation
	AllocationsByJob(namespace, id string) iter.Seq[*drover.Allocation]
	EvaluationsByJob(namespace, id string) iter.Seq[*drover.Evaluation]
}

// Subscription yields what changes.
type Subscription interface {
	// Next blocks for the next events. Errors: drover.Gone when some were missed.
	Next(ctx context.Context) (drover.Events, error)
	Close()
}

// Intake are the use cases of control that are needed here.
type Intake interface {
	// RegisterJob registers the job and returns when it is durable and visible. One with a JobModifyIndex replaces that very one.
	// Errors: Conflict: it was changed since.
	RegisterJob(ctx context.Context, job *drover.Job) error
	// DeregisterJob stops and purges the job.
	DeregisterJob(ctx context.Context, namespace, id string) error
	// ClaimRunners records claims in one entry, and what the pools need beside their size. The result has one error a
	// claim, nil where it was recorded; Conflict where it never can be. One that was recorded before, for the same
	// RunnerID, takes over its new idle timeout. A bounded one beyond its quota is Exhausted.
	ClaimRunners(ctx context.Context, claims []AllocClaim, demands []Demand) ([]error, error)
	// ReleaseRunners stops the allocations; unknown and ended ones are ignored, and those that another server keeps unless their
	// claimers asked for it.
	ReleaseRunners(ctx context.Context, r Releases) error
}

// AllocClaim is a claim to be recorded.
type AllocClaim struct {
	AllocID string       `json:"alloc"`
	Claim   drover.Claim `json:"claim"`
	Bounded bool         `json:"bounded,omitempty"` // recorded, before it is answered, only within the quota of its namespace
}

// Demand is how many runners an environment's pool needs beside its size, because claims wait.
type Demand struct {
	Environment string
	Runners     int
}

// Config of a Service.
type Config struct {
	// JournalPath is the file of claims not yet recorded; "" keeps none (dev mode without a data_dir).
	JournalPath string
	// Lease is that of the runners which this service may hand out (Allocation.Lease): the incarnation of a server that is one
	// of several. 0: there is no other.
	Lease uint64
	// Former is the incarnation of the same server that ended when this one began, so that what it kept was never another's; 0:
	// there was none.
	Former uint64
	// Sure has a claim answered only when the log has it, and not once its line is written: another server may begin to hand out
	// the same runners at any time.
	Sure bool
	// MaxWaiting bounds the claims that wait for a runner, for each environment; default 1,000.
	MaxWaiting int
	// MaxWait bounds how long a claim waits; default 5 minutes.
	MaxWait time.Duration
	// Environments are options of the jobs made for environments.
	Environments environment.Options
}

func (c Config) withDefaults() Config {
	if c.MaxWaiting == 0 {
		c.MaxWaiting = 1_000
	}
	if c.MaxWait == 0 {
		c.MaxWait = 5 * time.Minute
	}
	return c
}

// Deps of a Service.
type Deps struct {
	Snapshot func() Snapshot
	// Subscribe yields everything from the entry with this index on. Errors: drover.Gone if that is no longer kept.
	Subscribe func(index uint64) (Subscription, error)
	Intake    Intake
	// Workloads reaches a node. Errors: Unavailable while it is away.
	Workloads func(nodeID string) (exchange.Workloads, error)
	// Holds, if set, reports whether the leases still hold. It is asked when a claim comes, and again when the claim's line is
	// written: what was handed out late could be about to be stopped.
	Holds func() bool
	// Live, if set, reports whether the server with the lease has not ended.
	Live func(lease uint64) bool
	// Check, if set, says early what is wrong with an environment: an image that is a missing file, a namespace that not all servers
	// know to keep apart. Errors: Invalid, Unavailable.
	Check func(ctx context.Context, env execution.Environment) error
	// Claimed, if set, is told of claims that succeeded: the environment's key, and how long it took.
	Claimed func(environment string, took time.Duration)
	Clock   clock.Clock
	Log     *slog.Logger
}
