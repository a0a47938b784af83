package access

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/rights"
)

// Log commits commands; *raftlog.Log satisfies it. Commands of access control need cluster version 3: until then it refuses them and says
// why.
type Log interface {
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
}

// ResetIndex is where an operator leaves the index with which access control is bootstrapped again; ResetFile satisfies it.
type ResetIndex interface {
	// Read returns the index; 0 = there is none.
	Read() (uint64, error)
	// Remove takes it away, once it was used.
	Remove() error
}

// Deps is what an Access needs.
type Deps struct {
	Log   Log
	Store *store.Store
	Clock clock.Clock
	IDs   id.Source     // used by several goroutines at once; random, since secrets are made of it
	Reset ResetIndex    // nil: it cannot be bootstrapped again
	TTL   acl.TTLBounds // the zero value = acl.DefaultTTLBounds
	// CollectAfter is how long expired tokens are kept. 0 = CollectAfter.
	CollectAfter time.Duration
	// Follows is the region whose policies, roles and global tokens this one has: here they are not written. "" = this one's are its own.
	Follows string
	// Providers are asked who logs in; nil: nobody can.
	Providers Providers
	Keyring   Keyring      // encrypts the secrets of auth methods; nil: they can have none
	Logger    *slog.Logger // nil: nothing is logged
}

// Access has the use cases. Each asks what its caller may do, so that no face can forget it. It is for any number of goroutines.
type Access struct {
	deps   Deps
	logins chan struct{} // has one entry for each login that is under way
}

// New returns an Access.
func New(deps Deps) *Access {
	if deps.TTL == (acl.TTLBounds{}) {
		deps.TTL = acl.DefaultTTLBounds
	}
	deps.CollectAfter = cmp.Or(deps.CollectAfter, CollectAfter)
	return &Access{deps: deps, logins: make(chan struct{}, maxLogins)}
}

func (a *Access) now() time.Time { return a.deps.Clock.Now().UTC() }

// manages refuses who may not manage access control. Errors: ErrDenied.
func manages(who *rights.Caller) error {
	if who == nil || !who.Management() {
		return ErrDenied
	}
	return nil
}

// own refuses to write what comes from another region. Errors: Invalid.
func (a *Access) own(what string) error {
	if of := a.deps.Follows; of != "" {
		return drover.Errorf(drover.Invalid, "%s are those of region %q here: write them there", what, of)
	}
	return nil
}

// writes refuses who may not write what, or not here. Errors: ErrDenied, Invalid.
func (a *Access) writes(who *rights.Caller, what string) error {
	if err := manages(who); err != nil {
		return err
	}
	return a.own(what)
}

// propose commits c and returns its index and what it says.
func propose[T any](ctx context.Context, a *Access, c command.Command) (result T, index uint64, err error) {
	index, v, err := a.deps.Log.Propose(ctx, c)
	if err != nil {
		return result, 0, err
	}
	result, ok := v.(T)
	if !ok {
		return result, index, drover.Errorf(drover.Internal, "the command %s answered %T", c.Kind(), v)
	}
	return result, index, nil
}

// asInvalid makes what another object has already an error of who asks, as Nomad answers 400 there.
func asInvalid(err error) error {
	if drover.CodeOf(err) == drover.Conflict {
		return drover.Errorf(drover.Invalid, "%w", err)
	}
	return err
}

// apply commits c, which says nothing, and returns its index.
func (a *Access) apply(ctx context.Context, c command.Command) (uint64, error) {
	index, _, err := a.deps.Log.Propose(ctx, c)
	return index, err
}
