package identity

import (
	"context"

	"github.com/go-jose/go-jose/v4"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/workload"
)

// Signer signs claims, and has the keys that they are verified with; *keyring.Keyring is one.
type Signer interface {
	Sign(ctx context.Context, claims any) (token string, keyID string, err error)
	SignBytes(ctx context.Context, alg jose.SignatureAlgorithm, typ string, payload []byte) (token, keyID string, err error)
	PublicKeys() []jose.JSONWebKey
}

// Deps is what an Issuer needs.
type Deps struct {
	Signer Signer
	Store  *store.Store
	Clock  clock.Clock
	IDs    id.Source
	Issuer string // server.oidc_issuer; "" = tokens say none
	Region string
}

// Issuer makes tokens. It is for any number of goroutines.
type Issuer struct{ deps Deps }

// New returns an Issuer.
func New(deps Deps) *Issuer { return &Issuer{deps} }

// stamp is what a token of now says.
func (i *Issuer) stamp() claims.Stamp {
	return claims.Stamp{Issuer: i.deps.Issuer, Region: i.deps.Region, Now: i.deps.Clock.Now().UTC(), ID: i.deps.IDs.New()}
}

// Workloads makes the tokens that a node asks for, in their order. A node gets its own, and those of its own allocations that have not
// ended; which identities a task has, the server's own copy of the job says. What is unknown is reported, too, as the caller's state may
// be old.
// Errors: Invalid for too many, Unavailable while no key can be used.
func (i *Issuer) Workloads(
	ctx context.Context, nodeID string, wanted []exchange.IdentityRequest,
) (out []exchange.SignedIdentity, unknown bool, err error) {
	if len(wanted) > exchange.MaxIdentities {
		return nil, false, drover.Errorf(drover.Invalid, "%d tokens at once: ask for %d at most", len(wanted), exchange.MaxIdentities)
	}
	s := i.deps.Store.Snapshot()
	out = make([]exchange.SignedIdentity, len(wanted))
	for at, r := range wanted {
		if r == (exchange.IdentityRequest{}) {
			node := s.Node(nodeID)
			if unknown = unknown || node == nil; node == nil {
				out[at].Refused = errNoNode.Error()
			} else if out[at], err = i.node(ctx, s, node); err != nil {
				return nil, unknown, err
			}
			continue
		}
		alloc := s.Allocation(r.AllocID)
		unknown = unknown || alloc == nil
		w, err := entitled(alloc, nodeID, r)
		if err != nil {
			out[at].Refused = err.Error()
			continue
		}
		if out[at], err = i.workload(ctx, s, alloc, r.Task, w); err != nil {
			return nil, unknown, err
		}
	}
	return out, unknown, nil
}

// workload signs one token of a task.
func (i *Issuer) workload(
	ctx context.Context, s *store.Snapshot, alloc *drover.Allocation, task string, w *workload.Identity,
) (out exchange.SignedIdentity, err error) {
	stamp := i.stamp()
	says := claims.Workload(stamp, alloc, task, w)
	says.Extra = claims.Extra(s.Namespace(alloc.Namespace), w,
		claims.Place{Region: stamp.Region, Task: task, Alloc: alloc, Node: s.Node(alloc.NodeID)})
	if out.Token, _, err = i.deps.Signer.Sign(ctx, says); err != nil {
		return out, err
	}
	out.Made = stamp.Now
	if w.TTL > 0 {
		out.Expires = stamp.Now.Add(w.TTL)
	}
	return out, nil
}

// The refusals do not say whether another node has the allocation.
var (
	errNotYours = drover.Errorf(drover.Forbidden, "the node has no such allocation")
	errEnded    = drover.Errorf(drover.Forbidden, "the allocation has ended")
	errStopped  = drover.Errorf(drover.Forbidden, "the allocation is being stopped: only its poststop tasks get tokens")
)

// entitled returns the identity that is asked for. Errors: Forbidden, NotFound.
func entitled(alloc *drover.Allocation, nodeID string, r exchange.IdentityRequest) (*workload.Identity, error) {
	if alloc == nil || alloc.NodeID != nodeID || alloc.Job == nil {
		return nil, errNotYours
	}
	if alloc.ClientTerminal() {
		return nil, errEnded
	}
	group := alloc.Job.Group(alloc.TaskGroup)
	if group == nil {
		return nil, drover.Errorf(drover.NotFound, "the allocation's job has no group %q", alloc.TaskGroup)
	}
	for _, t := range group.Tasks {
		if t.Name != r.Task {
			continue
		}
		if alloc.ServerTerminal() && (t.Lifecycle == nil || t.Lifecycle.Hook != drover.HookPoststop) {
			return nil, errStopped
		}
		for _, w := range t.AllIdentities() {
			if w.IsDefault() && (r.Name == "" || r.Name == workload.DefaultIdentity) || w.Name == r.Name && r.Name != "" {
				return w, nil
			}
		}
		return nil, drover.Errorf(drover.NotFound, "task %q has no identity %q", r.Task, r.Name)
	}
	return nil, drover.Errorf(drover.NotFound, "group %q has no task %q", alloc.TaskGroup, r.Task)
}
