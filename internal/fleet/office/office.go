package office

import (
	"context"
	"iter"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// State is what the office reads, all of one moment. What is not known is nil.
type State interface {
	FleetPool(name string) *fleet.Pool
	FleetPools() iter.Seq[*fleet.Pool]
	FleetInstances(prefix string) iter.Seq[*fleet.InstanceRecord]
	FleetCosts(from string) iter.Seq[*fleet.Cost] // from a day on; "" = all
	UnfinishedByNode(nodeID string) iter.Seq[*drover.Allocation]
}

// Log is what the office writes. Errors: NotLeader, Unavailable.
type Log interface {
	PutPools(ctx context.Context, pools []*fleet.Pool) error
	// ApplyPools is PutPools at any server, for who saw the pools at the version. Errors: Conflict if they changed since;
	// Unavailable, too, while servers of an older program are among the others.
	ApplyPools(ctx context.Context, pools []*fleet.Pool, version uint64) error
}

// Loops are the loops of the providers, which run on the leading server only.
type Loops interface {
	// Each calls do on every loop, with its core, in the order of the providers' names. Errors: NotLeader, Unavailable, and
	// do's.
	Each(ctx context.Context, do func(provider string, now time.Time, c *pool.Core) error) error
	// Recorded returns once the log knows what the provider's loop knew when it was called. Errors: NotLeader, Unavailable.
	Recorded(ctx context.Context, provider string) error
	// Problem says why a provider can't be used; "" if it can, or if this server does not lead.
	Problem(provider string) string
}

// Deps is what an Office needs of others.
type Deps struct {
	State   func() State // of now
	Log     Log
	Loops   Loops
	Audit   *AuditLog
	Clock   clock.Clock
	Regions map[string]string // where each provider of the configuration buys
	Server  string            // this one's name
	// Configured are the pools of this server's file as it is now, canonicalized and valid; nil = it has none. Errors: Invalid.
	Configured func() ([]*fleet.Policy, error)
	// Others asks the other servers for the entries of their audit logs; nil = there are none. silent are those that do not answer.
	Others func(ctx context.Context, ask AuditQuery) (entries []fleet.Audit, silent []string)
}

// Office is the fleet as its faces see it. It may be used by several goroutines at once.
type Office struct{ deps Deps }

// New returns an office.
func New(deps Deps) *Office { return &Office{deps} }
