package nodes

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
)

// Issuer makes tokens of what runs on nodes; *identity.Issuer is one.
type Issuer interface {
	Workloads(ctx context.Context, nodeID string, wanted []exchange.IdentityRequest) ([]exchange.SignedIdentity, bool, error)
}

// SignIdentities implements exchange.Identities. Any server signs, with its own state. One that lacks an allocation looks again
// when it has what the leader had, and one that is cut off from the leader refuses, as the others may know that all has ended.
func (f *Front) SignIdentities(
	ctx context.Context, nodeID string, wanted []exchange.IdentityRequest,
) ([]exchange.SignedIdentity, error) {
	if f.deps.Issuer == nil {
		return nil, drover.Errorf(drover.NotImplemented, "this server makes no identities")
	}
	if f.deps.Servers.Clustered() {
		if err := f.Touch(); err != nil {
			return nil, err
		}
	}
	signed, unknown, err := f.deps.Issuer.Workloads(ctx, nodeID, wanted)
	if err != nil || !unknown || !f.deps.Servers.Clustered() {
		return signed, err
	}
	if err := f.Current(ctx); err != nil {
		return nil, err
	}
	signed, _, err = f.deps.Issuer.Workloads(ctx, nodeID, wanted)
	return signed, err
}

var _ exchange.Identities = (*Front)(nil)
