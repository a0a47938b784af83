package nodes

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// Looker answers what nodes' templates ask; *lookups.Lookups is one.
type Looker interface {
	Look(ctx context.Context, nodeID string, asked []exchange.Lookup, maxWait time.Duration) ([]exchange.Found, bool, error)
}

// Look implements exchange.Lookups. Any server answers with its own state, as SignIdentities does.
func (f *Front) Look(
	ctx context.Context, nodeID string, asked []exchange.Lookup, maxWait time.Duration,
) ([]exchange.Found, error) {
	if f.deps.Looker == nil {
		return nil, drover.Errorf(drover.NotImplemented, "this server answers no templates")
	}
	if f.deps.Servers.Clustered() {
		if err := f.Touch(); err != nil {
			return nil, err
		}
	}
	found, unknown, err := f.deps.Looker.Look(ctx, nodeID, asked, maxWait)
	if err != nil || !unknown || !f.deps.Servers.Clustered() {
		return found, err
	}
	if err := f.Current(ctx); err != nil {
		return nil, err
	}
	found, _, err = f.deps.Looker.Look(ctx, nodeID, asked, maxWait)
	return found, err
}

var _ exchange.Lookups = (*Front)(nil)
