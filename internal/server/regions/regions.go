package regions

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/federation"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
)

// procPull asks for what the regions share, once its index is not the caller's any more.
const procPull = "Federation.Pull"

// pullTimeout is more than a pull waits for a change.
const pullTimeout = 30 * time.Second

// Servers are those that gossip knows, of this region and others.
type Servers interface {
	Self() servers.Server
	Leader() (servers.Server, bool)
	Members() []members.Member
	Client() *peercall.Client
	Mux() *peercall.Mux
}

// Log is this region's.
type Log interface {
	Ready(ctx context.Context) error
	Follow(ctx context.Context, lead func(ctx context.Context))
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
}

// Methods decrypts and encrypts the secrets of auth methods; *access.Access satisfies it.
type Methods interface {
	Open(ctx context.Context, m *acl.AuthMethod) (*acl.AuthMethod, error)
	Seal(ctx context.Context, m *acl.AuthMethod) (*acl.AuthMethod, error)
}

// Deps is what a Regions works with.
type Deps struct {
	Servers   Servers
	Log       Log
	Store     *store.Store
	Region    string // this server's
	Authority string // the authoritative region; "" if there is none
	// Replication is the token with which this region asks the authoritative one for access control; "" = it does not.
	Replication acl.Secret
	// Own is the configuration's token, with which others may ask beside the management tokens of the state; "" = there is none.
	Own     acl.Secret
	Methods Methods
	IDs     id.Source // random
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Regions is this server among those of other regions.
type Regions struct {
	deps Deps
	told federation.Told
	turn atomic.Uint64 // which server of the authoritative region is asked next

	mu      sync.Mutex
	history store.History // guarded by mu: that of which epoch is
	epoch   string        // guarded by mu
}

// New makes one that answers other regions' servers through the mux.
func New(d Deps) *Regions {
	r := &Regions{deps: d}
	peercall.Handle(d.Servers.Mux(), procPull, func(ctx context.Context, _ string, ask federation.Ask) (federation.Answered, error) {
		return r.answer(ctx, ask)
	})
	return r
}

// epochOf names the state that the snapshot is of. A restored one is another state, and so is that of another server.
func (r *Regions) epochOf(s *store.Snapshot) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch == "" || r.history != s.History() {
		r.history, r.epoch = s.History(), r.deps.IDs.New()
	}
	return r.epoch
}

// answer tells what the regions share, through the leader if that is another server. Errors: NotLeader; Forbidden for a token that is none
// with which access control may be read.
func (r *Regions) answer(ctx context.Context, ask federation.Ask) (federation.Answered, error) {
	d := r.deps
	leader, ok := d.Servers.Leader()
	switch {
	case !ok:
		return federation.Answered{}, drover.Errorf(drover.NotLeader, "No cluster leader")
	case leader.ID != d.Servers.Self().ID:
		return r.ask(ctx, leader.Address, ask)
	}
	if err := d.Log.Ready(ctx); err != nil {
		return federation.Answered{}, err
	}
	if ask.Token == nil {
		out := federation.Answer(ctx, d.Store, d.Clock, ask, r.now(false))
		return federation.Answered{Plain: &out}, nil
	}
	if _, err := r.asker(ask.Token); err != nil {
		return federation.Answered{}, err
	}
	out := federation.Answer(ctx, d.Store, d.Clock, ask, r.now(true))
	out = r.opened(ctx, out)
	r.told.Shrink(ask, &out)
	token, err := r.asker(ask.Token) // it may have been revoked meanwhile
	if err != nil {
		return federation.Answered{}, err
	}
	data, err := peercall.Marshal(out)
	if err != nil {
		return federation.Answered{}, drover.Errorf(drover.Internal, "encoding what regions share: %w", err)
	}
	a := federation.Answered{Salt: d.IDs.New()}
	a.Sealed, err = federation.Seal(token, ask.Nonce, a.Salt, data)
	return a, err
}

// asker returns the management token of which the digest is. Errors: Forbidden.
func (r *Regions) asker(digest []byte) (acl.Secret, error) {
	if own := r.deps.Own; own != "" && subtle.ConstantTimeCompare(federation.Digest(own), digest) == 1 {
		return own, nil
	}
	t := r.deps.Store.Snapshot().ACLTokenByDigest(digest)
	if t == nil || t.Type != acl.ManagementToken || t.Expired(r.deps.Clock.Now()) {
		return "", drover.Errorf(drover.Forbidden, "the replication token is no management token of region %q", r.deps.Region)
	}
	return t.SecretID, nil
}

// now reads the state.
func (r *Regions) now(access bool) func(after uint64) federation.Objects {
	return func(after uint64) federation.Objects {
		s := r.deps.Store.Snapshot()
		return federation.Read(s, r.deps.Region, r.epochOf(s), after, access)
	}
}

// opened decrypts the secrets of auth methods. One whose secrets cannot be decrypted now is left out, and then everything is sent, without
// an epoch, so that it is asked for again.
func (r *Regions) opened(ctx context.Context, o federation.Objects) federation.Objects {
	methods, whole := r.openMethods(ctx, o.Access.Methods.Have)
	if !whole {
		o = r.now(true)(0)
		o.Epoch = ""
		methods, _ = r.openMethods(ctx, o.Access.Methods.Have)
	}
	o.Access.Methods.Have = methods
	return o
}

func (r *Regions) openMethods(ctx context.Context, list []*acl.AuthMethod) (out []*acl.AuthMethod, whole bool) {
	whole = true
	for _, m := range list {
		opened, err := r.deps.Methods.Open(ctx, m)
		if err != nil {
			r.deps.Logger.Warn("an auth method is not told to another region", "auth_method", m.Name, "error", err)
			whole = false
			continue
		}
		out = append(out, opened)
	}
	return out, whole
}

// ask asks another server.
func (r *Regions) ask(ctx context.Context, address string, ask federation.Ask) (federation.Answered, error) {
	ctx, cancel := r.deps.Clock.WithTimeout(ctx, pullTimeout)
	defer cancel()
	return peercall.Call[federation.Answered](ctx, r.deps.Servers.Client(), address, procPull, ask)
}

// pull asks a living server of the authoritative region, another one each time. Errors: Unavailable if none is known; Forbidden if it does
// not take the replication token, or has another one.
func (r *Regions) pull(ctx context.Context, after uint64, epoch string) (federation.Objects, error) {
	var there []members.Member
	for _, m := range r.deps.Servers.Members() {
		if m.Region == r.deps.Authority && m.Status == members.Alive {
			there = append(there, m)
		}
	}
	if len(there) == 0 {
		return federation.Objects{}, drover.Errorf(drover.Unavailable, "no server of region %q is known", r.deps.Authority)
	}
	ask, token := federation.Ask{After: after, Epoch: epoch, Differences: true}, r.deps.Replication
	if token != "" {
		ask.Token, ask.Nonce = federation.Digest(token), r.deps.IDs.New()
	}
	answer, err := r.ask(ctx, there[r.turn.Add(1)%uint64(len(there))].RPCAddr, ask)
	switch {
	case err != nil:
		return federation.Objects{}, err
	case token == "" && answer.Plain != nil:
		return *answer.Plain, nil
	case token == "":
		return federation.Objects{}, drover.Errorf(drover.Internal, "region %q answered nothing", r.deps.Authority)
	}
	data, err := federation.Open(token, ask.Nonce, answer)
	if err != nil {
		return federation.Objects{}, err
	}
	var out federation.Objects
	if err := peercall.Unmarshal(data, &out); err != nil {
		return federation.Objects{}, drover.Errorf(drover.Internal, "decoding what regions share: %w", err)
	}
	return out, nil
}

// Run follows the authoritative region while this server leads another, until ctx ends.
func (r *Regions) Run(ctx context.Context) error {
	d := r.deps
	deps := federation.Deps{
		State: func() federation.Objects { return r.now(d.Replication != "")(0) }, Pull: r.pull, Clock: d.Clock, Log: d.Logger,
		Seal: d.Methods.Seal,
		Propose: func(ctx context.Context, cmd command.Command) error {
			_, _, err := d.Log.Propose(ctx, cmd)
			return err
		},
	}
	d.Log.Follow(ctx, func(term context.Context) { federation.Run(term, deps) })
	return nil
}
