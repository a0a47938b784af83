package federation

import (
	"context"
	"log/slog"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/internal/telemetry"
)

// Objects is what the regions share, as it is at an index of the authoritative region's state.
type Objects struct {
	Index      uint64
	Namespaces []*drover.Namespace
	Pools      []*drover.NodePool
	Quotas     []*drover.QuotaSpec
	Region     string // whose they are; it decides which limit of a quota holds
}

// Deps are what a replicator works with.
type Deps struct {
	// Pull returns the authoritative region's objects once its index differs from after, or a while has passed.
	Pull func(ctx context.Context, after uint64) (Objects, error)
	// State returns this region's objects.
	State func() Objects
	// Propose writes into this region's log.
	Propose func(ctx context.Context, c command.Command) error
	Clock   clock.Clock
	Log     *slog.Logger
}

// The wait after a pull that failed doubles from the one to the other.
const (
	leastWait = time.Second
	mostWait  = time.Minute
)

// Run replicates until ctx ends.
func Run(ctx context.Context, d Deps) {
	var after uint64
	var failed, refused telemetry.Seldom
	for wait := leastWait; ctx.Err() == nil; {
		there, err := d.Pull(ctx, after)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failed.Warn(d.Log, d.Clock.Now(), "asking the authoritative region for namespaces, node pools and quotas", "error", err)
			clock.Sleep(ctx, d.Clock, wait)
			wait = min(2*wait, mostWait)
			continue
		}
		wait, after = leastWait, there.Index
		for _, c := range Differences(d.State(), there) {
			if err := d.Propose(ctx, c); err != nil && ctx.Err() == nil {
				refused.Warn(d.Log, d.Clock.Now(), "following the authoritative region", "command", c.Kind(), "error", err)
			}
		}
	}
}

// mostPull is how long a pull waits for a change: what was refused before is tried again then.
const mostPull = 20 * time.Second

// Store is the state that Answer reads.
type Store interface {
	Objects() Objects
	Watch(table, key string) <-chan struct{}
}

// Answer is what a pull gets: the objects once their index differs from after. A lower one tells of a state that went back.
func Answer(ctx context.Context, s Store, c clock.Clock, after uint64) Objects {
	timer := c.NewTimer(mostPull)
	defer timer.Stop()
	for {
		namespaces, pools, quotas := s.Watch(tables.Namespaces, ""), s.Watch(tables.NodePools, ""), s.Watch(tables.Quotas, "")
		if now := s.Objects(); now.Index != after {
			return now
		}
		select {
		case <-namespaces:
		case <-pools:
		case <-quotas:
		case <-timer.C():
			return s.Objects()
		case <-ctx.Done():
			return s.Objects()
		}
	}
}
