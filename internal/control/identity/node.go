package identity

import (
	"cmp"
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
)

// NodeTTL is the life of a node's identity where its pool says nothing, which is Nomad's.
const NodeTTL = 24 * time.Hour

// errNoNode is said to who has not registered, or was removed.
var errNoNode = drover.Errorf(drover.NotFound, "node not found: register first")

// node signs a node's identity, which lives as long as its pool says.
func (i *Issuer) node(ctx context.Context, s *store.Snapshot, n *drover.Node) (out exchange.SignedIdentity, err error) {
	ttl := NodeTTL
	if pool := s.NodePool(n.NodePool); pool != nil && pool.NodeIdentityTTL != "" {
		if d, err := time.ParseDuration(pool.NodeIdentityTTL); err == nil && d > 0 { // what is stored was checked
			ttl = d
		}
	}
	stamp := i.stamp()
	out.Token, _, err = i.deps.Signer.Sign(ctx, claims.Node(stamp, n, ttl))
	out.Made, out.Expires = stamp.Now, stamp.Now.Add(ttl)
	return out, err
}

// Introduction makes the token with which a machine becomes a node of the pool ("" = default), and of the name if one is given.
// Errors: NotFound for a pool that is not there, Unavailable while no key can be used.
func (i *Issuer) Introduction(ctx context.Context, name, pool string, ttl time.Duration) (string, error) {
	pool = cmp.Or(pool, drover.DefaultNodePool)
	if i.deps.Store.Snapshot().NodePool(pool) == nil || pool == drover.AllNodePool {
		return "", drover.Errorf(drover.NotFound, "NodePool: no node pool %q that nodes can be in", pool)
	}
	token, _, err := i.deps.Signer.Sign(ctx, claims.Introduction(i.stamp(), name, pool, ttl))
	return token, err
}

// Verify reads a token that a key of this cluster signed, and that is valid now. Errors: those of claims.
func (i *Issuer) Verify(token string) (*claims.Claims, error) {
	c, err := claims.Verify(token, i.deps.Signer.PublicKeys())
	if err != nil {
		return nil, err
	}
	return c, c.Check(i.deps.Clock.Now(), leeway)
}

// leeway is for clocks that differ.
const leeway = 5 * time.Second
